import { steadyClock } from '../../lib/time/steady-clock.ts';

/** What a poll of an async request finds. */
export type AsyncRecord<A> = { readonly headers?: Headers } & (
  | { readonly status: 'pending' | 'processing' }
  | { readonly status: 'complete'; readonly answer: A }
  | { readonly status: 'failed'; readonly error: string }
);

/** Headers that go out with an end, whenever it is read. */
export type Headers = Readonly<Record<string, string>>;

/**
 * The async requests that clients may poll. States: pending, processing, then complete or failed; no other step is
 * possible. Answers may be promises (a shared engine) or not (in memory): await them.
 */
export interface AsyncRecords<A> {
  /**
   * Begins a request as pending.
   * @returns `false`, and nothing has changed, when the id is taken, or the store is full and nothing there may be evicted.
   */
  reserve(id: string): boolean | Promise<boolean>;
  /** Moves a pending request on. @returns `false`, and nothing has changed, for any other. */
  processing(id: string): boolean | Promise<boolean>;
  /** Ends a processing request with its answer. @returns `false`, and nothing has changed, for any other. */
  complete(id: string, answer: A, headers?: Headers): boolean | Promise<boolean>;
  /** Ends a processing request with the text of its error. @returns `false`, and nothing has changed, for any other. */
  fail(id: string, error: string, headers?: Headers): boolean | Promise<boolean>;
  /** Reads a request for its client; a finished one counts as read from then on. */
  get(id: string): AsyncRecord<A> | undefined | Promise<AsyncRecord<A> | undefined>;
}

export interface AsyncStoreOptions {
  /** Most requests held at once; 100 by default. */
  readonly capacity?: number;
  /** Milliseconds that a request is kept from its start while it is not finished; 10 minutes by default. */
  readonly inFlight?: number;
  /** Milliseconds that a result is kept from its completion or failure; 1 minute by default. */
  readonly finished?: number;
  /** Milliseconds; the process's monotonic clock by default. */
  readonly now?: () => number;
}

interface Entry<A> {
  readonly record: AsyncRecord<A>;
  readonly expiresAt: number;
}

/**
 * The async requests in memory. An entry beyond its time is gone, for everyone: it can be neither read nor finished.
 * When the store is full, expired entries make room first, then the finished result that was first read the longest ago.
 */
export class AsyncStore<A> implements AsyncRecords<A> {
  readonly #capacity: number;
  readonly #inFlight: number;
  readonly #finished: number;
  readonly #elapsed: () => number;
  readonly #entries = new Map<string, Entry<A>>();
  /** The finished results that their clients have seen, in the order of the first look. */
  readonly #read = new Set<string>();

  constructor({ capacity = 100, inFlight = 600_000, finished = 60_000, now }: AsyncStoreOptions = {}) {
    this.#capacity = capacity;
    this.#inFlight = inFlight;
    this.#finished = finished;
    this.#elapsed = steadyClock(now);
  }

  /** Entries held, expired ones that nobody has dropped yet included; never more than the capacity. */
  get size(): number {
    return this.#entries.size;
  }

  reserve(id: string): boolean {
    this.dropExpired();
    if (this.#entries.has(id) || !this.#hasRoom()) return false;
    this.#entries.set(id, { record: { status: 'pending' }, expiresAt: this.#elapsed() + this.#inFlight });
    return true;
  }

  processing(id: string): boolean {
    const entry = this.#live(id);
    if (entry?.record.status !== 'pending') return false;
    this.#entries.set(id, { ...entry, record: { status: 'processing' } });
    return true;
  }

  complete(id: string, answer: A, headers?: Headers): boolean {
    return this.#finish(id, { status: 'complete', answer, ...(headers && { headers }) });
  }

  fail(id: string, error: string, headers?: Headers): boolean {
    return this.#finish(id, { status: 'failed', error, ...(headers && { headers }) });
  }

  get(id: string): AsyncRecord<A> | undefined {
    const record = this.#live(id)?.record;
    if (record?.status === 'complete' || record?.status === 'failed') this.#read.add(id);
    return record;
  }

  /** Gives up a request that could not begin. */
  forget(id: string): void {
    this.#drop(id);
  }

  /** Drops all expired entries. */
  dropExpired(): void {
    const now = this.#elapsed();
    for (const [id, entry] of this.#entries) {
      if (now >= entry.expiresAt) this.#drop(id);
    }
  }

  #finish(id: string, record: AsyncRecord<A>): boolean {
    const entry = this.#live(id);
    if (entry?.record.status !== 'processing') return false;
    this.#entries.set(id, { ...entry, record, expiresAt: this.#elapsed() + this.#finished });
    return true;
  }

  #live(id: string): Entry<A> | undefined {
    const now = this.#elapsed();
    const entry = this.#entries.get(id);
    if (entry !== undefined && now >= entry.expiresAt) {
      this.#drop(id);
      return undefined;
    }
    return entry;
  }

  /** Makes room where there is none, if it may. */
  #hasRoom(): boolean {
    if (this.#entries.size < this.#capacity) return true;
    const [longestRead] = this.#read;
    if (longestRead !== undefined) this.#drop(longestRead);
    return longestRead !== undefined;
  }

  #drop(id: string): void {
    this.#entries.delete(id);
    this.#read.delete(id);
  }
}
