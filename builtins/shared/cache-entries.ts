import { getHeapStatistics } from 'node:v8';
import { LRUCache } from 'lru-cache';
import { steadyClock } from '../../lib/time.ts';

/** The lifetime and the size of an entry. */
export interface CacheTerms {
  /** Milliseconds from now for which the entry is fresh. */
  readonly ttl: number;
  /** Milliseconds for which it may be used unchecked; less than `ttl` where the shared engine knows better. */
  readonly goodFor?: number;
  /** Milliseconds after `ttl` for which the stale entry is still kept. */
  readonly staleFor?: number;
  /** Bytes of the value; those of the key are added to it. */
  readonly size: number;
}

/** A value that was found, and the milliseconds until it ends; negative once it has. */
export interface Found<V> {
  readonly value: V;
  readonly ttl: number;
  readonly isGood: boolean;
}

/** The bounds and the clock of a cache. */
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

/** The share of the heap that the cache may fill; a small heap must leave room for requests and the service. */
const PART_OF_HEAP = 1 / 8;

/** The share of all bytes that one entry may take, so that a single answer cannot empty the cache. */
const LARGEST_PART = 1 / 8;

/** Strings take up to two bytes per code unit in memory. Keys count, because clients choose their length. */
const BYTES_PER_CODE_UNIT = 2;

/** Cached answers in memory, bounded by number and by bytes; the least recently used are evicted. */
export class CacheEntries<V> {
  readonly #entries: LRUCache<string, Entry<V>>;
  readonly #elapsed: () => number;

  constructor({ entries = 10_000, bytes, now }: CacheEntriesOptions = {}) {
    const maxSize = Math.floor(bytes ?? Math.min(MOST_BYTES, getHeapStatistics().heap_size_limit * PART_OF_HEAP));
    const maxEntrySize = Math.floor(maxSize * LARGEST_PART);
    this.#entries = new LRUCache({ max: entries, maxSize, maxEntrySize });
    this.#elapsed = steadyClock(now);
  }

  /** The number of entries, including expired ones that were not read since. */
  get size(): number {
    return this.#entries.size;
  }

  /** The bytes of all entries, as callers gave them, plus those of their keys. */
  get bytes(): number {
    return this.#entries.calculatedSize;
  }

  get(key: string): Found<V> | undefined {
    // Each call reads the clock, so that setting it back does not shorten the time since the call before.
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

  /** Stores a value in place of the key's old one. A value that is too large is not stored, and the old one is deleted. */
  set(key: string, value: V, { ttl, size, goodFor = ttl, staleFor = 0 }: CacheTerms): void {
    const now = this.#elapsed();
    const goodUntil = now + Math.min(ttl, goodFor);
    // Without a use for it when stale, the entry is dropped as soon as it is read.
    const heldUntil = staleFor === 0 ? goodUntil : now + ttl + staleFor;
    const entry = { value, endsAt: now + ttl, goodUntil, heldUntil };
    this.#entries.set(key, entry, { size: size + key.length * BYTES_PER_CODE_UNIT });
  }
}
