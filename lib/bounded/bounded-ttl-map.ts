interface Entry<V> {
  readonly key: string;
  value: V;
  expiresAt: number;
  /** Index of the entry in the heap. */
  place: number;
}

/** Most expired entries that one insert evicts: two, so that the map shrinks after a flood and no insert takes long. */
const DROPPED_PER_INSERT = 2;

/**
 * A bounded map with an expiry for each entry. A live entry is never evicted: when the map is full of live entries, a
 * new key is refused. An expired entry counts as absent, for reads and for room. Eviction costs O(log n): a binary heap
 * keeps the entry that expires first in front. The caller chooses the clock and its unit, and passes the time as `now`.
 * An entry is live while `now < expiresAt`.
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
    if (!Number.isSafeInteger(capacity) || capacity < 1)
      throw new RangeError(`capacity must be a positive integer, not ${capacity}`);
    this.#capacity = capacity;
  }

  /** Number of entries held, including expired ones not yet evicted; never more than the capacity. */
  get size(): number {
    return this.#entries.size;
  }

  /** Returns the value of a live entry. */
  get(key: string, now: number): V | undefined {
    return this.#find(key, now)?.value;
  }

  /** Returns when a live entry expires. */
  expiry(key: string, now: number): number | undefined {
    return this.#find(key, now)?.expiresAt;
  }

  /**
   * Adds an entry, or replaces the value and the expiry of the entry of that key.
   *
   * @returns `false`, with nothing changed, when the key is new and the map is full of live entries.
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

  /** Removes an entry. @returns whether there was one, live or expired. */
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

  /** Puts an entry at the index `free`, or up or down from there, so that no entry lies above one that expires earlier. */
  #settle(entry: Entry<V>, free: number): void {
    const next = this.#above(entry, free) ?? this.#below(entry, free);
    const nextFree = next?.place ?? free;
    this.#put(next ?? entry, free);
    if (next !== undefined) this.#settle(entry, nextFree);
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
