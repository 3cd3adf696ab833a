import { getHeapStatistics } from 'node:v8';
import { steadyClock } from '../../lib/time/steady-clock.ts';

/** How long an entry lives and how much it weighs. */
export interface CacheTerms {
  /** Milliseconds from now; an entry is found while less than this has passed. */
  readonly ttl: number;
  /** Milliseconds for which it is found as good; less than `ttl` where somebody else knows better. */
  readonly goodFor?: number;
  /** Milliseconds after its end for which it is found still, though no longer as good. */
  readonly staleFor?: number;
  /** Bytes of the value; those of the key are added to it. */
  readonly size: number;
}

/** A value that was found, and the milliseconds until it ends; less than 0 once it has. */
export interface Found<V> {
  readonly value: V;
  readonly ttl: number;
  readonly isGood: boolean;
}

export interface CacheEntriesOptions {
  /** Most entries held; 10,000 by default. */
  readonly entries?: number;
  /** Most bytes held, keys included; by default 64 MiB, or an eighth of V8's heap limit where that is less. */
  readonly bytes?: number;
  /** Milliseconds; the process's monotonic clock by default. */
  readonly now?: () => number;
}

interface Entry<V> {
  readonly value: V;
  readonly weight: number;
  readonly endsAt: number;
  readonly goodUntil: number;
  readonly heldUntil: number;
}

const MOST_BYTES = 64 * 1024 * 1024;

/** The part of the heap that the cache may fill; in a small heap the rest is for requests and the service itself. */
const PART_OF_HEAP = 1 / 8;

/** One entry may take this part of all bytes, so that a single answer cannot empty the cache. */
const LARGEST_PART = 1 / 8;

/** Strings take up to two bytes per code unit in memory. A key holds what a client sent, so it has to count. */
const BYTES_PER_CODE_UNIT = 2;

/** Cached answers in memory, bounded by number and by bytes; the least recently used make room. */
export class CacheEntries<V> {
  readonly #maxEntries: number;
  readonly #maxBytes: number;
  readonly #elapsed: () => number;
  /** Least recently used first: whatever is used is put back at the end. */
  readonly #entries = new Map<string, Entry<V>>();
  /** The most recently used key, which need not be moved when it is used again. */
  #newest: string | undefined;
  #bytes = 0;

  constructor({ entries = 10_000, bytes, now }: CacheEntriesOptions = {}) {
    this.#maxEntries = entries;
    this.#maxBytes = bytes ?? Math.min(MOST_BYTES, getHeapStatistics().heap_size_limit * PART_OF_HEAP);
    this.#elapsed = steadyClock(now);
  }

  /** Entries held, expired ones that nobody has asked for included. */
  get size(): number {
    return this.#entries.size;
  }

  /** Bytes held, as the callers gave them, and those of the keys. */
  get bytes(): number {
    return this.#bytes;
  }

  get(key: string): Found<V> | undefined {
    // The clock is read in each call, so that setting it back does not shorten the time since the call before.
    const now = this.#elapsed();
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry.heldUntil <= now) {
      this.#drop(key, entry);
      return undefined;
    }
    if (key !== this.#newest) {
      this.#drop(key, entry);
      this.#keep(key, entry);
    }
    return { value: entry.value, ttl: entry.endsAt - now, isGood: now < entry.goodUntil };
  }

  /**
   * Stores a value, in place of the one that its key had.
   *
   * @returns `false` when the value is not kept: too large, or without a positive `ttl` and a `size` of 0 or more. The
   *   key has no value then.
   */
  set(key: string, value: V, { ttl, size, goodFor = ttl, staleFor = 0 }: CacheTerms): boolean {
    const now = this.#elapsed();
    const present = this.#entries.get(key);
    if (present !== undefined) this.#drop(key, present);
    const weight = size + key.length * BYTES_PER_CODE_UNIT;
    if (!(ttl > 0 && size >= 0 && weight <= this.#maxBytes * LARGEST_PART)) return false;
    const goodUntil = now + Math.min(ttl, goodFor);
    // Without a use for it later, it makes room as soon as somebody asks.
    const heldUntil = staleFor === 0 ? goodUntil : now + ttl + staleFor;
    this.#keep(key, { value, weight, endsAt: now + ttl, goodUntil, heldUntil });
    this.#makeRoom();
    return this.#entries.has(key);
  }

  #makeRoom(): void {
    for (const [key, entry] of this.#entries) {
      if (this.#entries.size <= this.#maxEntries && this.#bytes <= this.#maxBytes) return;
      this.#drop(key, entry);
    }
  }

  #keep(key: string, entry: Entry<V>): void {
    this.#entries.set(key, entry);
    this.#newest = key;
    this.#bytes += entry.weight;
  }

  #drop(key: string, entry: Entry<V>): void {
    this.#entries.delete(key);
    this.#bytes -= entry.weight;
  }
}
