import type { CallContext } from './values.ts';

/** The part of an `AbortSignal` that is needed to wait on a client's behalf. */
export type AbortSource = Pick<AbortSignal, 'aborted' | 'addEventListener' | 'removeEventListener'>;

type Listener = Parameters<AbortSource['addEventListener']>[1];

/** Tells all who wait. */
export let abort: (signal: ClientSignal) => void;

/** Aborts when the client leaves: an `AbortSignal` at a fiftieth of the cost. */
export class ClientSignal implements AbortSource {
  #aborted = false;
  #listeners: Set<Listener> | undefined;

  static {
    abort = (signal) => {
      signal.#aborted = true;
      const listeners = signal.#listeners ?? [];
      signal.#listeners = undefined;
      for (const listener of listeners) notify(listener);
    };
  }

  constructor() {
    Object.freeze(this);
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  addEventListener(_: string, listener: Listener): void {
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
  }

  removeEventListener(_: string, listener: Listener): void {
    this.#listeners?.delete(listener);
  }
}

/** A listener that fails keeps none of the others from hearing of it. */
function notify(listener: Listener): void {
  try {
    const event = new Event('abort');
    if (typeof listener === 'function') listener(event);
    else listener.handleEvent(event);
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

/**
 * What one plugin has left of its budget in one request, shared by all its functions, which get it for its signal. Time is charged
 * while more calls are under way than wait for the rest of the pipeline.
 */
export class Charge implements CallContext {
  readonly #total: number;
  readonly #of: { readonly client: AbortSource } | undefined;
  #used = 0;
  /** Milliseconds of calls that have ended. */
  #noted = 0;
  #active = 0;
  /** When the calls were charged last. */
  #since = 0;
  /** Told when the budget ends, by calls that wait. */
  #waiting: Set<() => void> | undefined;
  #controller: AbortController | undefined;

  /** @param of whose client ends the work, too, when it leaves. */
  constructor(total: number, of?: { readonly client: AbortSource }) {
    this.#total = total;
    this.#of = of;
    Object.freeze(this);
  }

  /** Milliseconds at the beginning of the request. */
  get total(): number {
    return this.#total;
  }

  get remaining(): number {
    return this.#total - this.#used;
  }

  get exhausted(): boolean {
    return this.#used >= this.#total;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      if (this.#used >= this.#total) controller.abort();
      else if (this.#of !== undefined) onAbort(this.#of.client, () => controller.abort());
    }
    return this.#controller.signal;
  }

  /** A call begins. @returns what `end` wants to know. */
  begin(): number {
    this.#settle();
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

  /** Whether any time is left, that up to now charged. */
  hasTime(): boolean {
    this.#settle();
    return this.#used < this.#total;
  }

  /** What is pending. @throws Error when the budget ends first. */
  within<T>(pending: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const tell = () => reject(new Error('the budget has ended'));
      this.#waiting ??= new Set();
      this.#waiting.add(tell);
      this.#watch();
      const over = () => {
        this.#waiting?.delete(tell);
        this.#watch();
      };
      pending.finally(over).then(resolve, reject);
    });
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

  /** Calls go on (1), or wait for what is charged to nobody (-1). */
  resume(calls: 1 | -1): void {
    this.#settle();
    this.#active += calls;
    this.#watch();
  }

  /** Charges the calls under way. What is charged once is not charged again. */
  #settle(): void {
    const now = performance.now();
    if (this.#active > 0) this.#spend(now - this.#since);
    this.#since = now;
  }

  #spend(milliseconds: number): void {
    this.#used += milliseconds;
    if (this.#used >= this.#total) this.#controller?.abort();
  }

  /** Looked at by {@link later}, as long as somebody waits and time is charged. */
  #watch(): void {
    if (this.#active > 0 && this.#waiting !== undefined && this.#waiting.size > 0) {
      watched.add(this);
      if (watched.size === 1) timer?.ref();
      later(this.#since + this.#total - this.#used);
    } else if (watched.delete(this) && watched.size === 0) timer?.unref();
  }

  /** Tells who waits that the budget has ended. @returns when it will, otherwise. */
  look(): number {
    this.#settle();
    const left = this.#total - this.#used;
    if (left >= 1) return this.#since + left;
    // A timer may come a fraction of a millisecond early: the rest is charged with it.
    this.#spend(Math.max(left, 0));
    watched.delete(this);
    for (const tell of this.#waiting ?? []) tell();
    return Number.POSITIVE_INFINITY;
  }
}

/** Those of which calls wait, and one timer for all: to set one for each call would take longer than most calls do. */
const watched = new Set<Charge>();
let timer: NodeJS.Timeout | undefined;
let due = Number.POSITIVE_INFINITY;

/** Looks at the budgets of who waits at that time, at the latest. */
function later(at: number): void {
  if (at >= due) return;
  clearTimeout(timer);
  due = at;
  timer = setTimeout(
    () => {
      due = Number.POSITIVE_INFINITY;
      for (const charge of watched) later(charge.look());
    },
    // A budget may be longer than the longest timer.
    Math.min(Math.max(at - performance.now(), 0), 2 ** 31 - 1),
  );
}
