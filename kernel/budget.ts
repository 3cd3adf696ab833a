import { createAbortController } from './abort.ts';
import type { AbortSource } from './client-signal.ts';
import type { Call } from './values.ts';

/** What a function has used of a budget. */
export interface Spending {
  readonly stage: string;
  readonly milliseconds: number;
}

/** A clock that tells milliseconds, of which only differences mean anything. */
export type Clock = () => number;

const ownClock: Clock = () => performance.now();

/** What changes of a budget. */
interface Ledger {
  readonly clock: Clock;
  remaining: number;
  /** Calls under way, and those of them that wait for what is charged to nobody. */
  running: number;
  paused: number;
  /** When the calls were charged last. */
  since: number;
  /** Milliseconds of calls that have ended. */
  noted: number;
  readonly spent: Spending[];
  /** Told when the budget ends, by calls that wait. */
  readonly waiting: Set<() => void>;
  timer: NodeJS.Timeout | undefined;
  controller: AbortController | undefined;
}

let ledgerOf: (budget: Budget) => Ledger;

/**
 * How much time one plugin has left in one request, shared by all its hooks of that request. Plugins may look at it; only
 * {@link charging}, which they do not have, changes it.
 */
export class Budget implements Call {
  /** Milliseconds at the beginning of the request. */
  readonly total: number;
  readonly #client: AbortSource | undefined;
  readonly #ledger: Ledger;

  /** @param client whose disconnect ends the work too, if it does. */
  constructor(total: number, client?: AbortSource, clock = ownClock) {
    this.total = total;
    this.#client = client;
    this.#ledger = {
      clock,
      remaining: total,
      running: 0,
      paused: 0,
      since: 0,
      noted: 0,
      spent: [],
      waiting: new Set(),
      timer: undefined,
      controller: undefined,
    };
    // An own property would hide what the guard reads.
    Object.freeze(this);
  }

  static {
    ledgerOf = (budget) => budget.#ledger;
  }

  get remaining(): number {
    return this.#ledger.remaining;
  }

  /** What each function that was called has used, in the order of their ends. */
  get spent(): readonly Spending[] {
    return [...this.#ledger.spent];
  }

  get exhausted(): boolean {
    return this.#ledger.remaining <= 0;
  }

  get signal(): AbortSignal {
    const ledger = this.#ledger;
    if (ledger.controller === undefined) {
      const controller = createAbortController();
      ledger.controller = controller;
      if (this.#client?.aborted || this.exhausted) controller.abort();
      else this.#client?.addEventListener('abort', { handleEvent: () => controller.abort() });
    }
    return ledger.controller.signal;
  }
}

Object.freeze(Budget.prototype);

/** Charges the calls under way, unless all of them wait. What is charged once is not charged again. */
function settle(ledger: Ledger): void {
  const now = ledger.clock();
  if (ledger.running > ledger.paused) spend(ledger, now - ledger.since);
  ledger.since = now;
}

function spend(ledger: Ledger, milliseconds: number): void {
  ledger.remaining -= milliseconds;
  if (ledger.remaining <= 0) ledger.controller?.abort();
}

/** One timer for all who wait, while time is charged. */
function arm(ledger: Ledger): void {
  clearTimeout(ledger.timer);
  if (ledger.waiting.size === 0 || ledger.running <= ledger.paused) return;
  ledger.timer = setTimeout(
    () => {
      settle(ledger);
      // By another clock less time has passed. A timer may come a fraction of a millisecond early: the rest is charged with it.
      if (ledger.remaining >= 1) return arm(ledger);
      spend(ledger, Math.max(ledger.remaining, 0));
      for (const tell of ledger.waiting) tell();
    },
    Math.max(ledger.remaining, 0),
  );
}

/** What the kernel alone may do to a budget. */
export const charging = {
  /** A call begins. @returns what {@link end} wants to know. */
  begin(budget: Budget): number {
    const ledger = ledgerOf(budget);
    settle(ledger);
    ledger.running += 1;
    return budget.total - ledger.remaining - ledger.noted;
  },

  /** @returns whether any time is left. */
  hasTime(budget: Budget): boolean {
    settle(ledgerOf(budget));
    return !budget.exhausted;
  },

  /** Tells when the budget ends, until the call ends. */
  whenExhausted(budget: Budget, tell: () => void): void {
    const ledger = ledgerOf(budget);
    ledger.waiting.add(tell);
    arm(ledger);
  },

  /** A call waits for what is charged to nobody. */
  pause(budget: Budget): void {
    const ledger = ledgerOf(budget);
    settle(ledger);
    ledger.paused += 1;
    arm(ledger);
  },

  resume(budget: Budget): void {
    const ledger = ledgerOf(budget);
    settle(ledger);
    ledger.paused -= 1;
    arm(ledger);
  },

  /** A call has ended: what it used, without the calls inside it, is kept for those who measure. */
  end(budget: Budget, stage: string, begun: number, tell: (() => void) | undefined): void {
    const ledger = ledgerOf(budget);
    ledger.running -= 1;
    if (tell !== undefined) ledger.waiting.delete(tell);
    if (ledger.waiting.size === 0) clearTimeout(ledger.timer);
    const milliseconds = budget.total - ledger.remaining - ledger.noted - begun;
    ledger.noted += milliseconds;
    ledger.spent.push(Object.freeze({ stage, milliseconds }));
  },
};

/** Does work that takes none of a budget's time. */
export async function uncharged<T>(budget: Budget | undefined, work: () => Promise<T>): Promise<T> {
  if (budget === undefined) return work();
  charging.pause(budget);
  try {
    return await work();
  } finally {
    charging.resume(budget);
  }
}
