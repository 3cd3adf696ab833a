import type { CallContext } from './values.ts';

/** The part of an `AbortSignal` that is needed to wait on a client's behalf. */
export type AbortSource = Pick<AbortSignal, 'aborted' | 'addEventListener' | 'removeEventListener'>;

type Listener = Parameters<AbortSource['addEventListener']>[1];

/** Tells all who wait. */
export let abort: (signal: ClientSignal) => void;

/** Aborts when the client leaves: an `AbortSignal` at a fiftieth of the cost. */
export class ClientSignal implements AbortSource {
  #aborted = false;
  readonly #listeners = new Set<Listener>();

  static {
    abort = (signal) => {
      signal.#aborted = true;
      for (const listener of signal.#listeners) notify(listener);
      signal.#listeners.clear();
    };
  }

  constructor() {
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

/** A listener that fails keeps none of the others from hearing of it. */
function notify(listener: Listener): void {
  try {
    if (typeof listener === 'function') listener(new Event('abort'));
    else listener.handleEvent(new Event('abort'));
  } catch {
    // It was told; what it makes of that is its own business.
  }
}

/** Has somebody told of an abort, also of one that was before. @returns what takes that back. */
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

/** Milliseconds of the longest timer. */
const LONGEST = 2 ** 31 - 1;

/**
 * What one plugin has left of its budget in one request, shared by all its functions, which get it for its signal. Time is charged
 * while more calls are under way than wait for the rest of the pipeline.
 */
export class Charge implements CallContext {
  /** Milliseconds at the beginning of the request. */
  readonly total: number;
  readonly #of: { readonly client: AbortSource } | undefined;
  #used = 0;
  /** Milliseconds of calls that have ended. */
  #noted = 0;
  #active = 0;
  /** When the calls were charged last. */
  #since = 0;
  #controller: AbortController | undefined;
  /** Told when the budget ends, by calls that wait. */
  #waiting: Set<() => void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @param of whose client ends the work, too, when it leaves. */
  constructor(total: number, of?: { readonly client: AbortSource }) {
    this.total = total;
    this.#of = of;
    Object.freeze(this);
  }

  get remaining(): number {
    return this.total - this.#used;
  }

  get exhausted(): boolean {
    return this.#used >= this.total;
  }

  get signal(): AbortSignal {
    this.#controller ??= signalOf(this.#of?.client);
    if (this.#used >= this.total) this.#controller.abort();
    return this.#controller.signal;
  }

  /** A call begins. @returns what `end` wants to know. */
  begin(): number {
    this.hasTime();
    this.#active += 1;
    return this.#used - this.#noted;
  }

  /** A call has ended, of which `hasTime` has just been asked. @returns what it used, without the calls inside it. */
  end(begun: number): number {
    this.#active -= 1;
    const milliseconds = this.#used - this.#noted - begun;
    this.#noted += milliseconds;
    return milliseconds;
  }

  /** Whether any time is left, now that the calls under way are charged. What is charged once is not charged again. */
  hasTime(): boolean {
    const now = performance.now();
    if (this.#active > 0) this.#spend(now - this.#since);
    this.#since = now;
    return this.#used < this.total;
  }

  /** Calls go on (1), or wait for what is charged to nobody (-1). */
  resume(calls: 1 | -1): void {
    this.hasTime();
    this.#active += calls;
    this.#watch();
  }

  /** Does work that takes none of the budget's time. */
  async uncharged<T>(work: () => Promise<T>): Promise<T> {
    this.resume(-1);
    try {
      return await work();
    } finally {
      this.resume(1);
    }
  }

  /** What is pending. @throws Error when the budget ends first. */
  within<T>(pending: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const tell = () => reject(new Error('the budget has ended'));
      this.#waiting ??= new Set();
      this.#waiting.add(tell);
      this.#watch();
      const over = (settle: (outcome: never) => void) => (outcome: unknown) => {
        this.#waiting?.delete(tell);
        this.#watch();
        settle(outcome as never);
      };
      pending.then(over(resolve), over(reject));
    });
  }

  #spend(milliseconds: number): void {
    this.#used += milliseconds;
    if (this.#used >= this.total) this.#controller?.abort();
  }

  /** Tells those who wait when the budget ends, as long as time is charged. */
  #watch(): void {
    clearTimeout(this.#timer);
    if (this.#active > 0 && this.#waiting?.size)
      this.#timer = setTimeout(() => this.#look(), Math.min(this.remaining, LONGEST));
  }

  #look(): void {
    // A timer may come a fraction of a millisecond early: the rest is charged with it.
    if (this.hasTime() && this.remaining < 1) this.#spend(this.remaining);
    if (this.exhausted) for (const tell of this.#waiting ?? []) tell();
    else this.#watch();
  }
}
