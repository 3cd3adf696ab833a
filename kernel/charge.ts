import { setInterval } from 'node:timers';
import type { CallContext } from './values.ts';

/** The part of an `AbortSignal` that is needed to wait on a client's behalf. */
export type AbortSource = Pick<AbortSignal, 'aborted' | 'addEventListener' | 'removeEventListener'>;

type Listener = Parameters<AbortSource['addEventListener']>[1];

/** A signal that aborts when the client leaves. It costs a fiftieth of an `AbortSignal`. */
export class ClientSignal implements AbortSource {
  #aborted = false;
  readonly #listeners = new Set<Listener>();

  static abort(this: void, signal: ClientSignal): void {
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

/** Aborts a client signal. Code that only has the signal cannot. */
export const { abort } = ClientSignal;
// Otherwise plugins would have it, as `exchange.clientSignal.constructor.abort`.
Reflect.deleteProperty(ClientSignal, 'abort');

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

const over = () => new Error('the budget has ended');

/** Bounds of the milliseconds until a budget is checked again. More checks would cost much. */
const LOOKS = { soonest: 5, latest: 1000 };
// Node keeps timers of equal length in a list, and drops it with the last one: each call would pay for a new list.
setInterval(() => undefined, LOOKS.latest).unref();

/**
 * The budget of one plugin in one request, shared by all its functions, which get it as their call context. Time is charged
 * once, however many of the plugin's calls are under way.
 */
export class Charge implements CallContext {
  readonly plugin: string | undefined;
  readonly #total: number;
  readonly #request: { readonly clientSignal: AbortSource } | undefined;
  #used: number;
  /** Milliseconds that calls which have ended used. */
  #noted = 0;
  /** Calls under way. */
  #calls = 0;
  /** The calls under way that wait for uncharged work, and for how much each; made with the first one. */
  #waiting: Map<object, number> | undefined;
  /** The time at which the clock was last read. */
  #since = 0;
  #controller: AbortController | undefined;

  /** @param request the signal also aborts when its client leaves. @param remaining milliseconds left of the total. */
  constructor(total: number, request?: { readonly clientSignal: AbortSource }, plugin?: string, remaining = total) {
    this.#total = total;
    this.#used = total - remaining;
    this.#request = request;
    this.plugin = plugin;
  }

  /** The milliseconds of budget at the beginning of the request. */
  get total(): number {
    return this.#total;
  }

  get remaining(): number {
    return this.#total - this.#used;
  }

  get signal(): AbortSignal {
    this.#controller ??= controllerOf(this.#request?.clientSignal);
    if (this.#used >= this.#total) this.#controller.abort();
    return this.#controller.signal;
  }

  /** Replaces the signal that was aborted when the client left: the work goes on without the client. */
  renewSignal(): void {
    this.#controller = undefined;
  }

  /** Reads the clock, and charges the time since the last reading if a call was under way. @returns whether any time is left. */
  chargeTime(): boolean {
    const now = performance.now();
    if (this.#calls > (this.#waiting?.size ?? 0)) this.#used += now - this.#since;
    this.#since = now;
    if (this.#used < this.#total) return true;
    this.#controller?.abort();
    return false;
  }

  /** Charges time as `chargeTime` does. @throws Error if none is left. */
  requireTime(): void {
    if (!this.chargeTime()) throw over();
  }

  /** Begins a call. @returns the value to pass to `end`. @throws Error if no time is left. */
  begin(): number {
    this.requireTime();
    this.#calls += 1;
    return this.#used - this.#noted;
  }

  /**
   * Ends a call; `chargeTime` must come just before.
   * @param begun undefined for a call that found no time left.
   * @param call what its uncharged work was begun with.
   * @returns the milliseconds that it used, without the calls inside it.
   */
  end(begun: number | undefined, call?: object): number {
    if (begun === undefined) return 0;
    this.#calls -= 1;
    // No call waits for work that was begun before the last one ended.
    if (this.#calls === 0) this.#waiting = undefined;
    else if (call !== undefined) this.#waiting?.delete(call);
    const milliseconds = this.#used - this.#noted - begun;
    this.#noted += milliseconds;
    return milliseconds;
  }

  /**
   * Does work that a call waits for. Its time is not charged, unless another call is at work.
   * @param call the call under way; by default one that waits for nothing else.
   * @throws Error if no time is left, and what the work throws.
   */
  async uncharged<T>(work: () => Promise<T>, call: object = {}): Promise<T> {
    this.requireTime();
    if (this.#calls === 0) return work();
    this.#waiting ??= new Map();
    const waiting = this.#waiting;
    waiting.set(call, (waiting.get(call) ?? 0) + 1);
    try {
      return await work();
    } finally {
      this.chargeTime();
      const left = (waiting.get(call) ?? 0) - 1;
      if (left > 0) waiting.set(call, left);
      else waiting.delete(call);
    }
  }

  /** Calls a function with an error when the budget ends. @returns a function that prevents it. */
  onEnd(tell: (error: Error) => void): () => void {
    let timer: NodeJS.Timeout | undefined;
    // Time may be left after the timer: none was charged while the call waited for uncharged work.
    const look = () => {
      if (!this.chargeTime()) return tell(over());
      timer = setTimeout(look, Math.min(Math.max(Math.ceil(this.remaining), LOOKS.soonest), LOOKS.latest));
    };
    look();
    return () => clearTimeout(timer);
  }
}
