import type { CallContext } from './values.ts';

/** The part of an `AbortSignal` that is needed to wait on a client's behalf. */
export type AbortSource = Pick<AbortSignal, 'aborted' | 'addEventListener' | 'removeEventListener'>;

type Listener = Parameters<AbortSource['addEventListener']>[1];

/** Aborts the signal. Its holders cannot. */
export let abort: (signal: ClientSignal) => void;

/** Aborts when the client leaves: an `AbortSignal` at a fiftieth of the cost. */
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
          // One that fails keeps none of the others from hearing of it.
        }
      }
      signal.#listeners.clear();
    };
  }

  constructor() {
    // An own property would hide whether a listener is left.
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

/** Calls a listener at an abort, also at an earlier one. @returns a function that removes it. */
export function onAbort(source: AbortSource, tell: () => void): () => void {
  if (source.aborted) tell();
  else source.addEventListener('abort', tell);
  return () => source.removeEventListener('abort', tell);
}

/** A signal of the platform that aborts with another. */
export function signalOf(source: AbortSource | undefined): AbortController {
  const controller = new AbortController();
  if (source !== undefined) onAbort(source, () => controller.abort());
  return controller;
}

/** Milliseconds from one look at a budget to the next: what is less would cost much while a call waits, and node has no longer timers. */
const LOOKS = { soonest: 5, latest: 2 ** 31 - 1 };

/**
 * What one plugin has left of its budget in one request, shared by all its functions, which get it for its signal. Time is charged
 * once, however many of its calls are under way.
 */
export class Charge implements CallContext {
  readonly plugin: string | undefined;
  readonly #total: number;
  readonly #of: { readonly clientSignal: AbortSource } | undefined;
  #used: number;
  /** Milliseconds of calls that have ended. */
  #noted = 0;
  /** Calls under way, and those of them that do not wait for uncharged work. */
  #calls = 0;
  #active = 0;
  /** How often no call was under way any more: what was begun before then is waited for by none. */
  #idle = 0;
  /** When the clock was read last. */
  #since = 0;
  #controller: AbortController | undefined;

  /** @param of whose client ends the work, too, when it leaves. @param remaining milliseconds of the total that are left. */
  constructor(total: number, of?: { readonly clientSignal: AbortSource }, plugin?: string, remaining = total) {
    this.#total = total;
    this.#used = total - remaining;
    this.#of = of;
    this.plugin = plugin;
  }

  /** Milliseconds at the beginning of the request. */
  get total(): number {
    return this.#total;
  }

  get remaining(): number {
    return this.#total - this.#used;
  }

  get signal(): AbortSignal {
    this.#controller ??= signalOf(this.#of?.clientSignal);
    if (this.#used >= this.#total) this.#controller.abort();
    return this.#controller.signal;
  }

  /** The client whose leaving aborted the signal is waited for no more. */
  renewSignal(): void {
    this.#controller = undefined;
  }

  /**
   * Reads the clock, and charges the time since it was read last.
   * @param isCharged whether a call was under way meanwhile.
   * @returns whether any time is left.
   */
  chargeTime(isCharged: boolean = this.#active > 0): boolean {
    const now = performance.now();
    if (isCharged) this.#used += now - this.#since;
    this.#since = now;
    if (this.#used < this.#total) return true;
    this.#controller?.abort();
    return false;
  }

  /** A call begins. @returns what `end` wants to know. */
  begin(): number {
    this.#calls += 1;
    this.resume();
    return this.#used - this.#noted;
  }

  /** A call has ended, of which `chargeTime` has just been asked. @returns what it used, without the calls inside it. */
  end(begun: number): number {
    this.#calls -= 1;
    this.#active -= 1;
    if (this.#calls === 0) {
      this.#active = 0;
      this.#idle += 1;
    }
    const milliseconds = this.#used - this.#noted - begun;
    this.#noted += milliseconds;
    return milliseconds;
  }

  /** A call waits for uncharged work. */
  pause(): void {
    this.chargeTime();
    this.#active -= 1;
  }

  resume(): void {
    this.chargeTime();
    this.#active += 1;
  }

  /** Does work that takes none of the budget's time. */
  async uncharged<T>(work: () => Promise<T>): Promise<T> {
    const idle = this.#idle;
    this.pause();
    try {
      return await work();
    } finally {
      if (idle === this.#idle) this.resume();
    }
  }

  /** The result of a call. It fails if the budget ends first, and a later result is dropped. */
  within<T>(pending: PromiseLike<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const start = () => setTimeout(look, Math.min(Math.max(this.remaining, LOOKS.soonest), LOOKS.latest));
      // While the call waits for uncharged work, what is left stays the same.
      const look = () => {
        if (this.chargeTime()) timer = start();
        else reject(new Error('the budget has ended'));
      };
      let timer = start();
      // `finally` would cost three promises more.
      const settle = (how: () => void) => {
        clearTimeout(timer);
        how();
      };
      // Its own `then` may throw, and is read in a turn of its own.
      new Promise<T>((follow) => follow(pending)).then(
        (value) => settle(() => resolve(value)),
        (error) => settle(() => reject(error)),
      );
    });
  }
}
