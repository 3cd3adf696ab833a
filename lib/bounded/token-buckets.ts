import { steadyClock } from '../time.ts';
import { BoundedTtlMap } from './bounded-ttl-map.ts';

/** A token bucket: `max` tokens, refilled within `window` milliseconds. */
export interface BucketLimit {
  readonly max: number;
  readonly window: number;
}

/** The outcome of taking tokens from a bucket. */
export interface Taken {
  /** Tokens that were taken, from 0 to the number asked for. */
  readonly granted: number;
  /** Whole milliseconds until the bucket holds a token; 0 when all that was asked for was granted. */
  readonly retryAfter: number;
  /** Tokens left in the bucket, fractions included; negative when more was spent than it held. */
  readonly left: number;
}

/** The stored state of a bucket. */
export interface Bucket {
  /** Tokens that were missing at the time `at`. */
  readonly used: number;
  /** Time of this state, in milliseconds. */
  readonly at: number;
}

/**
 * Refills a bucket and takes tokens from it, in exact integers. A token is counted as `window` parts, of which `max`
 * flow in per millisecond.
 * @param bucket `undefined` for a full one.
 * @param take first deducts `debt` tokens that were spent already, then takes at most `n`.
 * @returns also the new state of the bucket, and as `ttl` the milliseconds until it is full.
 */
export function takeFrom(
  bucket: Bucket | undefined,
  { max, window }: BucketLimit,
  { n, debt, now }: { readonly n: number; readonly debt: number; readonly now: number },
): Taken & { readonly bucket: Bucket; readonly ttl: number } {
  const { used, at } = bucket ?? { used: 0, at: now };
  const owed = Math.max(Math.round(used * window) - Math.max(now - at, 0) * max, 0) + Math.round(debt * window);
  const granted = Math.min(n, Math.max(Math.floor((max * window - owed) / window), 0));
  const missing = owed + granted * window;
  const retryAfter = granted === n ? 0 : Math.max(Math.ceil((missing + window - max * window) / max), 0);
  const after = { used: missing / window, at: now };
  return { granted, retryAfter, left: max - after.used, bucket: after, ttl: Math.ceil(missing / max) };
}

/** The outcome of taking one token: whether it was granted, and when to ask again. A refusal costs nothing. */
export type TokenTake = Pick<Taken, 'granted' | 'retryAfter'>;

/**
 * Rate limits by client. `take` returns a promise where a shared engine keeps the buckets, and a plain value in memory:
 * await it in any case.
 */
export interface ClientBuckets {
  /** Takes one token. @param key - the client, as `clientKey` returns it: a short text. */
  take(key: string): Taken | Promise<Taken>;
}

/**
 * A token bucket for each client, in bounded memory.
 *
 * A bucket that is full again equals an absent one and may be evicted. No other bucket ever is. Clients for whom there is
 * no room share one bucket. So:
 *
 * - No client is let in more often than a bucket of its own would allow. A flood of addresses resets nobody.
 * - A client with its own bucket is counted exactly, and keeps its tokens however many others come.
 * - While the table is full, all new clients together get what one client would get.
 * - A client that gets its own bucket starts with the state of the shared one, so what it drew from that still counts.
 */
export class TokenBuckets implements ClientBuckets {
  readonly #limit: BucketLimit;
  readonly #elapsed: () => number;
  readonly #buckets: BoundedTtlMap<Bucket>;
  /** The bucket of all clients for whom there is no room. */
  #shared: Bucket | undefined;

  /**
   * @param capacity most clients with a bucket of their own.
   * @param now the clock, in milliseconds; default the process's monotonic one. A step back neither fills nor drains a bucket.
   */
  constructor({ max, window }: BucketLimit, capacity = 100_000, now?: () => number) {
    this.#limit = { max, window };
    this.#buckets = new BoundedTtlMap(capacity);
    this.#elapsed = steadyClock(now);
  }

  /** Number of clients with a bucket of their own, including full ones not yet evicted. */
  get size(): number {
    return this.#buckets.size;
  }

  take(key: string): Taken {
    return this.#take(key, 1, 0);
  }

  /** Takes tokens out of a client's bucket until at most `left` remain; a negative `left` is a debt. */
  lower(key: string, left: number): void {
    this.#take(key, 0, Math.max(this.#take(key, 0, 0).left - left, 0));
  }

  #take(key: string, n: number, debt: number): Taken {
    const now = this.#elapsed();
    // Even a bucket that has expired, being full again, is read: it is the client's own, and the shared one is not.
    const known = this.#buckets.get(key, Number.NEGATIVE_INFINITY) ?? this.#shared;
    const taken = takeFrom(known, this.#limit, { n, debt, now });
    const hasTaken = taken.granted > 0 || debt > 0;
    if (hasTaken && !this.#buckets.set(key, taken.bucket, now + taken.ttl, now)) this.#shared = taken.bucket;
    return taken;
  }
}
