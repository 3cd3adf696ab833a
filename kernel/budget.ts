import { createAbortController } from './abort.ts';
import type { Exchange } from './exchange.ts';
import type { Call } from './values.ts';

/** What a function has used of a budget. */
export interface Spending {
  readonly stage: string;
  readonly milliseconds: number;
}

let charge: (budget: Budget, milliseconds: number) => void;
/** Keeps what a call has used, for those who measure. */
export let note: (budget: Budget, spending: Spending) => void;
/** The stopwatches that run on a budget now. */
let running: (budget: Budget) => Stopwatch[];

/**
 * How much time one plugin has left in one request, shared by all its hooks of that request. Plugins may look at it; only
 * this module's functions, which they do not have, change it.
 */
export class Budget implements Call {
  readonly #total: number;
  #remaining: number;
  readonly #spent: Spending[] = [];
  readonly #running: Stopwatch[] = [];
  readonly #exchange: Exchange | undefined;
  #controller: AbortController | undefined;

  /** @param exchange whose client's disconnect ends the work too, if it does. */
  constructor(total: number, exchange?: Exchange) {
    this.#total = total;
    this.#remaining = total;
    this.#exchange = exchange;
    // An own property would hide what the guard reads.
    Object.freeze(this);
  }

  static {
    charge = (budget, milliseconds) => {
      budget.#remaining -= milliseconds;
      if (budget.exhausted) budget.#controller?.abort();
    };
    note = (budget, spending) => void budget.#spent.push(Object.freeze(spending));
    running = (budget) => budget.#running;
  }

  /** Milliseconds at the beginning of the request. */
  get total(): number {
    return this.#total;
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
      const client = this.#exchange?.signal;
      if (client?.aborted || this.exhausted) controller.abort();
      // Whoever has the client's signal can send it an event, which is no abort.
      else client?.addEventListener('abort', () => client.aborted && controller.abort());
    }
    return this.#controller.signal;
  }
}

Object.freeze(Budget.prototype);

/** A clock that tells milliseconds, of which only differences mean anything. */
export type Clock = () => number;

const ownClock: Clock = () => performance.now();

/** Charges the time of one call to a budget. */
export class Stopwatch {
  readonly #budget: Budget;
  readonly #clock: Clock;
  #since: number;
  #used = 0;
  #pauses = 0;
  #isOver = false;
  #timer: NodeJS.Timeout | undefined;
  #exhausted: (() => void) | undefined;

  /** Runs at once. */
  constructor(budget: Budget, clock: Clock = ownClock) {
    this.#budget = budget;
    this.#clock = clock;
    this.#since = clock();
    running(budget).push(this);
  }

  /** Milliseconds that were charged. */
  get used(): number {
    return this.#used;
  }

  /** Charges the time since the last charge: what is charged once is not charged again. @returns whether any time is left. */
  charge(): boolean {
    if (this.#pauses === 0 && !this.#isOver) {
      const now = this.#clock();
      const milliseconds = now - this.#since;
      this.#since = now;
      this.#used += milliseconds;
      charge(this.#budget, milliseconds);
    }
    return !this.#budget.exhausted;
  }

  /** Tells when the budget ends. A timer may come a fraction of a millisecond early: the rest is charged with it. */
  whenExhausted(tell: () => void): void {
    this.#exhausted = tell;
    if (this.#pauses > 0) return;
    const end = () => {
      this.charge();
      // By another clock less time has passed.
      if (this.#budget.remaining >= 1) return this.whenExhausted(tell);
      charge(this.#budget, Math.max(this.#budget.remaining, 0));
      tell();
    };
    this.#timer = setTimeout(end, Math.max(this.#budget.remaining, 0));
  }

  /** Time until {@link resume} is charged to nobody. May be nested. */
  pause(): void {
    this.charge();
    this.#pauses += 1;
    clearTimeout(this.#timer);
  }

  resume(): void {
    this.#pauses -= 1;
    if (this.#pauses > 0 || this.#isOver) return;
    this.#since = this.#clock();
    if (this.#exhausted !== undefined) this.whenExhausted(this.#exhausted);
  }

  /** Nothing is charged any more, what was not charged yet included. */
  stop(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    const others = running(this.#budget);
    const index = others.lastIndexOf(this);
    if (index >= 0) others.splice(index, 1);
  }
}

/** Does work that takes none of a budget's time: all calls that it pays for wait meanwhile. */
export async function uncharged<T>(budget: Budget | undefined, work: () => Promise<T>): Promise<T> {
  const paused = budget === undefined ? [] : [...running(budget)];
  for (const stopwatch of paused) stopwatch.pause();
  try {
    return await work();
  } finally {
    for (const stopwatch of paused) stopwatch.resume();
  }
}
