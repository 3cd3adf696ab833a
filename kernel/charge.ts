// Where a test environment replaces the global one, its timers may have no `unref`.
import { setInterval } from 'node:timers';
import type { CallContext } from './values.ts';

/** The part of an `AbortSignal` that is needed to wait on a client's behalf. */
export type AbortSource = Pick<AbortSignal, 'aborted' | 'addEventListener' | 'removeEventListener'>;

type Listener = Parameters<AbortSource['addEventListener']>[1];

/** Aborts a client signal. Code that only has the signal cannot. */
export let abort: (signal: ClientSignal) => void;

/** A signal that aborts when the client leaves. It costs a fiftieth of an `AbortSignal`. */
export class ClientSignal implements AbortSource {
  #aborted = false;
  readonly #listeners = new Set<Listener>();

  static {
    abort = (signal) => {
      signal.#aborted = true;
      for (const listener of signal.#listeners) {
        try {
          if (typeof listener === 'function') listener(new Event('abort'));
          else listener.handleEvent(new Event('abort'));
        } catch {
          // The other listeners must still be called.
        }
      }
      signal.#listeners.clear();
    };
  }

  constructor() {
    // Otherwise a plugin could shadow its members, and hide the abort from the kernel.
    Object.freeze(this);
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  addEventListener(_: string, listener: Listener): void {
    this.#listeners.add(listener);
  }

  removeEventListener(_: string, listener: Listener): void {
    this.#listeners.delete(listener);
  }
}

/** Calls a listener when the source aborts, or at once if it has aborted. @returns a function that removes the listener. */
export function onAbort(source: AbortSource, tell: () => void): () => void {
  if (source.aborted) tell();
  else source.addEventListener('abort', tell);
  return () => source.removeEventListener('abort', tell);
}

/** Returns the controller of a native `AbortSignal` that aborts when the source does. */
export function controllerOf(source: AbortSource | undefined): AbortController {
  const controller = new AbortController();
  if (source !== undefined) onAbort(source, () => controller.abort());
  return controller;
}

/** Makes the error of a call whose plugin has no time left. */
export const over = () => new Error('the budget has ended');

/** Bounds of the milliseconds until a budget is checked again. More checks would cost much. */
const LOOKS = { soonest: 5, latest: 1000 };
// Node keeps timers of equal length in a list, and drops it with the last one: each call would pay for a new list.
setInterval(() => undefined, LOOKS.latest).unref();

/** Milliseconds of a plugin per request, or `none` if it bounds its `unbounded` stages itself. */
export type Budget = number | 'none';
/** Milliseconds of a plugin that names none. */
export const DEFAULT_BUDGET_MS = 1000;

/** A call of a plugin's function. */
export interface ChargedCall {
  /** Milliseconds that it used, without the calls inside it. */
  used: number;
  /** For how much uncharged work it waits; infinite once it has ended. */
  waitsFor: number;
  /** The call that was the latest one when it began. */
  previous: ChargedCall | undefined;
}

/** What a plugin has used in a request and its forks. */
interface Ledger {
  /** Milliseconds. */
  used: number;
  /** The latest of the calls under way. */
  latest: ChargedCall | undefined;
  /** The time at which the clock was last read. */
  since: number;
}

/** Returns the latest call that does not wait for uncharged work. */
function latestAtWork({ latest }: Ledger): ChargedCall | undefined {
  let call = latest;
  while (call !== undefined && call.waitsFor > 0) call = call.previous;
  return call;
}

/**
 * The budget of one plugin in one request, shared by all its functions, which get it as their call context. However many of the
 * plugin's calls are under way, time is charged once: to the latest of those that do not wait for uncharged work.
 */
export class Charge implements CallContext {
  readonly plugin: string | undefined;
  readonly #total: number;
  readonly #request: { readonly clientSignal: AbortSource } | undefined;
  readonly #ledger: Ledger;
  #controller: AbortController | undefined;

  /**
   * @param budget milliseconds.
   * @param request the signal also aborts when its client leaves.
   * @param origin the plugin's charge in the request that this one is a fork of: they are one budget, with a signal each.
   */
  constructor(budget: Budget, request?: { readonly clientSignal: AbortSource }, plugin?: string, origin?: Charge) {
    this.#total = budget === 'none' ? Number.POSITIVE_INFINITY : budget;
    this.#ledger = origin === undefined ? { used: 0, latest: undefined, since: 0 } : origin.#ledger;
    this.#request = request;
    this.plugin = plugin;
  }

  /** The milliseconds of budget at the beginning of the request; infinite for a plugin without a budget. */
  get total(): number {
    return this.#total;
  }

  get remaining(): number {
    return this.#total - this.#ledger.used;
  }

  get signal(): AbortSignal {
    this.#controller ??= controllerOf(this.#request?.clientSignal);
    if (this.remaining <= 0) this.#controller.abort();
    return this.#controller.signal;
  }

  /** Replaces the signal that was aborted when the client left: the work goes on without the client. */
  renewSignal(): void {
    this.#controller = undefined;
  }

  /** Reads the clock, and charges the time since the last reading if a call was at work. @returns whether any time is left. */
  chargeTime(): boolean {
    if (this.#total === Number.POSITIVE_INFINITY) return true;
    const ledger = this.#ledger;
    const now = performance.now();
    const call = latestAtWork(ledger);
    if (call !== undefined) {
      call.used += now - ledger.since;
      ledger.used += now - ledger.since;
    }
    ledger.since = now;
    if (ledger.used < this.#total) return true;
    this.#controller?.abort();
    return false;
  }

  /** Charges time as `chargeTime` does. @throws Error if none is left. */
  requireTime(): void {
    if (!this.chargeTime()) throw over();
  }

  /** Begins a call. @throws Error if no time is left. */
  begin(call: ChargedCall): void {
    this.requireTime();
    call.previous = this.#ledger.latest;
    this.#ledger.latest = call;
  }

  /** Charges time as `chargeTime` does, and ends a call. @returns whether any time is left. */
  end(call: ChargedCall): boolean {
    const isLeft = this.chargeTime();
    call.waitsFor = Number.POSITIVE_INFINITY;
    const ledger = this.#ledger;
    while (ledger.latest?.waitsFor === Number.POSITIVE_INFINITY) ledger.latest = ledger.latest.previous;
    return isLeft;
  }

  /**
   * Does work whose time is not charged, unless another call is at work.
   * @param call the one that waits for the work; by default the latest one that waits for nothing.
   * @throws Error if no time is left, and what the work throws.
   */
  async uncharged<T>(work: () => Promise<T>, call?: ChargedCall): Promise<T> {
    this.requireTime();
    const waiting = call ?? latestAtWork(this.#ledger);
    if (waiting === undefined) return work();
    waiting.waitsFor += 1;
    try {
      return await work();
    } finally {
      this.chargeTime();
      waiting.waitsFor -= 1;
    }
  }

  /** Waits for what a call has promised. @throws Error when the budget ends first. */
  within(pending: PromiseLike<unknown>): Promise<unknown> {
    // A plugin's `then` may throw: a promise reads and calls it safely, in a later turn.
    const followed = new Promise((follow) => follow(pending));
    if (this.#total === Number.POSITIVE_INFINITY) return followed;
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      // Time may be left after the timer: none was charged while the call waited for uncharged work.
      const look = () => {
        if (!this.chargeTime()) return reject(over());
        timer = setTimeout(look, Math.min(Math.max(Math.ceil(this.remaining), LOOKS.soonest), LOOKS.latest));
      };
      const ending = (settle: (value: unknown) => void) => (value: unknown) => {
        clearTimeout(timer);
        settle(value);
      };
      look();
      followed.then(ending(resolve), ending(reject));
    });
  }
}
