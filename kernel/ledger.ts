import type { Exchange } from './exchange.ts';

/** What a plugin's function may use to learn that it should stop. */
export interface Call {
  /** Aborts when the plugin's budget ends or the client disconnects. */
  readonly signal: AbortSignal;
}

/** What a function has used of a budget. */
export interface Spending {
  readonly stage: string;
  readonly milliseconds: number;
}

/** Uses up a part of what is left. */
export let charge: (ledger: Ledger, milliseconds: number) => void;
/** Keeps what a call has used, for those who measure. */
export let note: (ledger: Ledger, spending: Spending) => void;

/**
 * How much time one plugin has left in one request; shared by all its hooks of that request. Plugins may look at it; only
 * this module's functions, which they do not have, change it.
 */
export class Ledger implements Call {
  readonly #budget: number;
  #remaining: number;
  readonly #spent: Spending[] = [];
  readonly #exchange: Exchange | undefined;
  #controller: AbortController | undefined;

  /** @param exchange whose client's disconnect ends the work too, if it does. */
  constructor(budget: number, exchange?: Exchange) {
    this.#budget = budget;
    this.#remaining = budget;
    this.#exchange = exchange;
    // An own property would hide what the guard reads.
    Object.freeze(this);
  }

  static {
    charge = (ledger, milliseconds) => {
      ledger.#remaining -= milliseconds;
      if (ledger.exhausted) ledger.#controller?.abort();
    };
    note = (ledger, spending) => void ledger.#spent.push(Object.freeze(spending));
  }

  /** Milliseconds at the beginning of the request. */
  get budget(): number {
    return this.#budget;
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
      const controller = new AbortController();
      this.#controller = controller;
      const client = this.#exchange?.signal;
      if (client?.aborted || this.exhausted) controller.abort();
      else client?.addEventListener('abort', () => controller.abort(), { once: true });
    }
    return this.#controller.signal;
  }
}

Object.freeze(Ledger.prototype);
