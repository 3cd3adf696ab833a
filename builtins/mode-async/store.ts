/** Milliseconds for which an unfinished request is kept from its start, even if its process has died. */
export const UNFINISHED_TTL_MS = 600_000;
/** Milliseconds for which a result is kept from its completion or failure. */
export const FINISHED_TTL_MS = 60_000;

/** How a request ended, and the headers of each response that shows it. */
export type Ended<A> = { readonly headers?: Readonly<Record<string, string>> | undefined } & (
  | { readonly status: 'complete'; readonly answer: A }
  | { readonly status: 'failed'; readonly error: string }
);

/** What a poll of an async request finds. */
export type AsyncRecord<A> = { readonly status: 'pending' | 'processing' } | Ended<A>;

export function isEnded<A>(record: AsyncRecord<A> | undefined): record is Ended<A> {
  return record?.status === 'complete' || record?.status === 'failed';
}

interface Entry<A> {
  readonly record: AsyncRecord<A>;
  /** Forgets the request when its time is over. */
  readonly timer: NodeJS.Timeout;
}

/**
 * The async requests in memory. States: pending, processing, then complete or failed; no other step is possible.
 * An entry beyond its time is gone, for everyone: it can be neither read nor finished. When the store is full, the finished
 * result whose first read is the oldest makes room.
 */
export class AsyncStore<A> {
  readonly #capacity: number;
  readonly #entries = new Map<string, Entry<A>>();
  /** The finished results that their clients have read, in the order of the first read. */
  readonly #read = new Set<string>();

  /** @param capacity most requests held at once. */
  constructor(capacity = 100) {
    this.#capacity = capacity;
  }

  /** Entries held; never more than the capacity. */
  get size(): number {
    return this.#entries.size;
  }

  /** Entries that make no room for others: unfinished or unread ones. */
  get taken(): number {
    return this.#entries.size - this.#read.size;
  }

  /**
   * Begins a request as pending.
   * @returns `false`, and nothing has changed, when the id is taken, or the store is full and nothing there may be evicted.
   */
  reserve(id: string): boolean {
    if (this.#entries.has(id) || this.taken >= this.#capacity) return false;
    const [longestRead] = this.#read;
    if (this.size >= this.#capacity && longestRead !== undefined) this.forget(longestRead);
    this.#keep(id, { status: 'pending' }, UNFINISHED_TTL_MS);
    return true;
  }

  /** Moves a pending request on. @returns `false`, and nothing has changed, for any other. */
  processing(id: string): boolean {
    const entry = this.#entries.get(id);
    if (entry?.record.status !== 'pending') return false;
    this.#entries.set(id, { ...entry, record: { status: 'processing' } });
    return true;
  }

  /**
   * Ends a processing request. @param isRead whether it makes room at once.
   * @returns `false`, and nothing has changed, for any other.
   */
  end(id: string, record: Ended<A>, isRead = false): boolean {
    if (this.#entries.get(id)?.record.status !== 'processing') return false;
    this.forget(id);
    this.#keep(id, record, FINISHED_TTL_MS);
    if (isRead) this.#read.add(id);
    return true;
  }

  /** Reads a request for its client; a finished one counts as read from then on, unless `isShown` is `false`. */
  get(id: string, isShown = true): AsyncRecord<A> | undefined {
    const record = this.#entries.get(id)?.record;
    if (isShown && isEnded(record)) this.#read.add(id);
    return record;
  }

  /** Gives up a request. */
  forget(id: string): void {
    clearTimeout(this.#entries.get(id)?.timer);
    this.#entries.delete(id);
    this.#read.delete(id);
  }

  #keep(id: string, record: AsyncRecord<A>, ttl: number): void {
    this.#entries.set(id, { record, timer: setTimeout(() => this.forget(id), ttl).unref() });
  }
}
