import { createAbortController } from './abort.ts';
import { type AbortSource, onAbort } from './client-signal.ts';
import type { CallContext } from './values.ts';

/** What a function has used of a budget. */
export interface Spending {
  readonly stage: string;
  readonly milliseconds: number;
}

/** A clock that tells milliseconds, of which only differences mean anything. */
export type Clock = () => number;

const ownClock: Clock = () => performance.now();

/**
 * How much time one plugin has left in one request, shared by all its hooks of that request. Plugins may look at it; only
 * {@link charging}, which they do not have, changes it.
 */
export class Budget implements CallContext {
  /** Milliseconds at the beginning of the request. */
  readonly total: number;
  readonly #client: AbortSource | undefined;
  readonly #clock: Clock;
  #remaining: number;
  /** Calls under way, and those of them that wait for what is charged to nobody. */
  #running = 0;
  #paused = 0;
  /** When the calls were charged last. */
  #since = 0;
  /** Milliseconds of calls that have ended. */
  #noted = 0;
  readonly #spent: Spending[] = [];
  /** Told when the budget ends, by calls that wait. */
  readonly #waiting = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;
  #controller: AbortController | undefined;

  /** @param client whose disconnect ends the work too, if it does. */
  constructor(total: number, client?: AbortSource, clock = ownClock) {
    this.total = total;
    this.#remaining = total;
    this.#client = client;
    this.#clock = clock;
    // An own property would hide what the guard reads.
    Object.freeze(this);
  }

  get remaining(): number {
    return this.#remaining;
  }

  /** What each function that was called has used, in the order of their ends. */
  get spent(): readonly Spending[] {
    return [...this.#spent];
  }

  get exhausted(): boolean {
    return this.#remaining <= 0;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = createAbortController();
      this.#controller = controller;
      if (this.exhausted) controller.abort();
      else if (this.#client !== undefined) onAbort(this.#client, () => controller.abort());
    }
    return this.#controller.signal;
  }

  /** Charges the calls under way, unless all of them wait. What is charged once is not charged again. */
  #settle(): void {
    const now = this.#clock();
    if (this.#running > this.#paused) this.#spend(now - this.#since);
    this.#since = now;
  }

  #spend(milliseconds: number): void {
    this.#remaining -= milliseconds;
    if (this.exhausted) this.#controller?.abort();
  }

  /** One timer for all who wait, while time is charged. */
  #arm(): void {
    clearTimeout(this.#timer);
    if (this.#waiting.size === 0 || this.#running <= this.#paused) return;
    const end = () => {
      this.#settle();
      // By another clock less time has passed. A timer may come a fraction of a millisecond early: the rest is charged with it.
      if (this.#remaining >= 1) return this.#arm();
      this.#spend(Math.max(this.#remaining, 0));
      for (const tell of this.#waiting) tell();
    };
    this.#timer = setTimeout(end, Math.max(this.#remaining, 0));
  }

  static readonly charging = {
    /** A call begins. @returns what `end` wants to know. */
    begin(budget: Budget): number {
      budget.#settle();
      budget.#running += 1;
      return budget.total - budget.#remaining - budget.#noted;
    },

    /** @returns whether any time is left. */
    hasTime(budget: Budget): boolean {
      budget.#settle();
      return !budget.exhausted;
    },

    /** Tells when the budget ends, until the call ends. */
    whenExhausted(budget: Budget, tell: () => void): void {
      budget.#waiting.add(tell);
      budget.#arm();
    },

    /** Calls wait for what is charged to nobody (1), or go on (-1). */
    pause(budget: Budget, calls: 1 | -1): void {
      budget.#settle();
      budget.#paused += calls;
      budget.#arm();
    },

    /** A call has ended: what it used, without the calls inside it, is kept for those who measure. */
    end(budget: Budget, stage: string, begun: number, tell: (() => void) | undefined): void {
      budget.#running -= 1;
      if (tell !== undefined && budget.#waiting.delete(tell)) budget.#arm();
      const milliseconds = budget.total - budget.#remaining - budget.#noted - begun;
      budget.#noted += milliseconds;
      budget.#spent.push(Object.freeze({ stage, milliseconds }));
    },
  };
}

/** What the kernel alone may do to a budget. */
export const { charging } = Budget;
Reflect.deleteProperty(Budget, 'charging');
Object.freeze(Budget.prototype);

/** Does work that takes none of a budget's time. */
export async function uncharged<T>(budget: Budget | undefined, work: () => Promise<T>): Promise<T> {
  if (budget === undefined) return work();
  charging.pause(budget, 1);
  try {
    return await work();
  } finally {
    charging.pause(budget, -1);
  }
}
