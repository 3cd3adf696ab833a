interface Entry<V> {
  readonly key: string;
  value: V;
  expiresAt: number;
  /** Where the entry stands in the heap. */
  place: number;
}

/** A new key may push out two expired entries, so that the map shrinks again after a flood without ever pausing. */
const DROPPED_PER_INSERT = 2;

/**
 * A bounded map with an expiry for each entry. A live entry is never pushed out: when every place is taken by one, a
 * new key is refused. An expired entry is as good as absent, for reading and as room. Finding room costs O(log n),
 * whatever the ends are: a binary heap keeps the entry that ends first in front. The unit of time is the caller's, and
 * so is the clock: each method that needs the time is told it. An entry is live while `now < expiresAt`.
 */
export class BoundedTtlMap<V> {
  readonly #capacity: number;
  readonly #entries = new Map<string, Entry<V>>();
  readonly #heap: Entry<V>[] = [];

  /**
   * @param capacity - most entries held at once.
   * @throws RangeError when the capacity is no positive integer.
   */
  constructor(capacity: number) {
    if (!Number.isSafeInteger(capacity) || capacity < 1) {
      throw new RangeError(`capacity must be a positive integer, not ${capacity}`);
    }
    this.#capacity = capacity;
  }

  /** Entries held, expired ones that nobody has dropped yet included; never more than the capacity. */
  get size(): number {
    return this.#entries.size;
  }

  /** The value of a live entry. */
  get(key: string, now: number): V | undefined {
    return this.#find(key, now)?.value;
  }

  /** When a live entry ends. */
  expiry(key: string, now: number): number | undefined {
    return this.#find(key, now)?.expiresAt;
  }

  /**
   * Adds an entry, or gives the one of that key a new value and end.
   *
   * @returns `false`, and nothing has changed, when the key is new and every place is taken by a live entry.
   * @throws RangeError when `expiresAt` is NaN.
   */
  set(key: string, value: V, expiresAt: number, now: number): boolean {
    if (Number.isNaN(expiresAt)) throw new RangeError('expiresAt must be a number, not NaN');
    const present = this.#entries.get(key);
    if (present === undefined) this.#dropExpired(now);
    if (present === undefined && this.#entries.size >= this.#capacity) return false;
    const entry = present ?? { key, value, expiresAt, place: this.#heap.length };
    Object.assign(entry, { value, expiresAt });
    this.#entries.set(key, entry);
    this.#settle(entry, entry.place);
    return true;
  }

  /** Takes an entry out. @returns whether there was one, live or expired. */
  delete(key: string): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    this.#entries.delete(key);
    const last = this.#heap.pop();
    if (last !== undefined && last !== entry) this.#settle(last, entry.place);
    return true;
  }

  #find(key: string, now: number): Entry<V> | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && now < entry.expiresAt ? entry : undefined;
  }

  #dropExpired(now: number): void {
    for (let dropped = 0; dropped < DROPPED_PER_INSERT; dropped++) {
      const first = this.#heap[0];
      if (first === undefined || now < first.expiresAt) return;
      this.delete(first.key);
    }
  }

  /** Puts an entry where it belongs, from a free place on: those above that end later move down, or those below up. */
  #settle(entry: Entry<V>, free: number): void {
    let place = free;
    for (;;) {
      const next = this.#above(entry, place) ?? this.#below(entry, place);
      if (next === undefined) break;
      const from = next.place;
      this.#put(next, place);
      place = from;
    }
    this.#put(entry, place);
  }

  #above({ expiresAt }: Entry<V>, place: number): Entry<V> | undefined {
    const above = place > 0 ? this.#heap[(place - 1) >> 1] : undefined;
    return above !== undefined && above.expiresAt > expiresAt ? above : undefined;
  }

  #below({ expiresAt }: Entry<V>, place: number): Entry<V> | undefined {
    const left = this.#heap[2 * place + 1];
    const right = this.#heap[2 * place + 2];
    const below = left !== undefined && right !== undefined && right.expiresAt < left.expiresAt ? right : left;
    return below !== undefined && below.expiresAt < expiresAt ? below : undefined;
  }

  #put(entry: Entry<V>, place: number): void {
    entry.place = place;
    this.#heap[place] = entry;
  }
}
