import { getHeapStatistics } from 'node:v8';
import { LRUCache } from 'lru-cache';
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
  readonly #entries: LRUCache<string, Entry<V>>;
  readonly #elapsed: () => number;

  constructor({ entries = 10_000, bytes, now }: CacheEntriesOptions = {}) {
    const maxSize = Math.floor(bytes ?? Math.min(MOST_BYTES, getHeapStatistics().heap_size_limit * PART_OF_HEAP));
    const maxEntrySize = Math.floor(maxSize * LARGEST_PART);
    this.#entries = new LRUCache({ max: entries, maxSize, maxEntrySize });
    this.#elapsed = steadyClock(now);
  }

  /** Entries held, expired ones that nobody has asked for included. */
  get size(): number {
    return this.#entries.size;
  }

  /** Bytes held, as the callers gave them, and those of the keys. */
  get bytes(): number {
    return this.#entries.calculatedSize;
  }

  get(key: string): Found<V> | undefined {
    // The clock is read in each call, so that setting it back does not shorten the time since the call before.
    const now = this.#elapsed();
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry.heldUntil > now) return { value: entry.value, ttl: entry.endsAt - now, isGood: now < entry.goodUntil };
    this.#entries.delete(key);
    return undefined;
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  /** Stores a value, in place of the one that its key had. The key has no value where this one is too large. */
  set(key: string, value: V, { ttl, size, goodFor = ttl, staleFor = 0 }: CacheTerms): void {
    const now = this.#elapsed();
    const goodUntil = now + Math.min(ttl, goodFor);
    // Without a use for it later, it makes room as soon as somebody asks.
    const heldUntil = staleFor === 0 ? goodUntil : now + ttl + staleFor;
    const entry = { value, endsAt: now + ttl, goodUntil, heldUntil };
    this.#entries.set(key, entry, { size: size + key.length * BYTES_PER_CODE_UNIT });
  }
}
