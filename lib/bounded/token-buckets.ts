import { steadyClock } from '../time/steady-clock.ts';
import { BoundedTtlMap } from './bounded-ttl-map.ts';

/** A token bucket: `max` tokens, refilled within `window` milliseconds. */
export interface BucketLimit {
  readonly max: number;
  readonly window: number;
}

/** What was taken from a bucket. */
export interface Taken {
  /** Tokens that were taken, from 0 to what was asked for. */
  readonly granted: number;
  /** Whole milliseconds until the bucket holds a token; 0 when all that was asked for was granted. */
  readonly retryAfter: number;
  /** Tokens in the bucket now, a fraction included; negative when more was spent than it held. */
  readonly left: number;
}

/** What is kept of a bucket. */
export interface Bucket {
  /** Tokens that were missing at that time. */
  readonly used: number;
  /** Milliseconds. */
  readonly at: number;
}

/**
 * The arithmetic of a token bucket. It is exact in integers: tokens are counted in parts, `window` of them to the
 * token, of which `max` flow in per millisecond.
 * @param bucket nothing: a full one.
 * @param take `debt` tokens that were spent already, and `n` at most beside them.
 * @returns also the bucket, and the milliseconds until it is full.
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

/** What a client's bucket answered. */
export interface TokenTake {
  /** Whether a token was taken. A refusal costs nothing. */
  readonly allowed: boolean;
  /** Whole milliseconds until the bucket holds a token again; 0 when one was taken. */
  readonly retryAfter: number;
}

/**
 * Rate limits by client. The answer may be a promise (a shared engine) or not (in memory): await it.
 */
export interface ClientBuckets {
  /** @param key - the client, as `clientKey` gives it: a short text. */
  take(key: string): TokenTake | Promise<TokenTake>;
  /** Tokens that are missing from a client's bucket, as far as this process knows. */
  used(key: string): number;
}

const ALLOWED: TokenTake = { allowed: true, retryAfter: 0 };

/**
 * A token bucket for each client, in bounded memory.
 *
 * A bucket that is full again is as good as absent and gives up its place. No other bucket ever does. Clients that find no
 * place share one bucket. So:
 *
 * - Nobody is ever let in more often than a bucket of his own would let him, whoever else comes and however many they are.
 *   A flood of addresses resets nobody.
 * - A client with a place is counted exactly. It keeps its tokens, however many others come.
 * - While the table is full all new clients together get what one would get. So does a client that finds a place while the
 *   shared bucket is not full again: what it has drawn of that is not forgotten.
 */
export class TokenBuckets implements ClientBuckets {
  readonly #limit: BucketLimit;
  readonly #elapsed: () => number;
  readonly #buckets: BoundedTtlMap<Bucket>;
  /** That of all clients without a place. */
  #shared: Bucket | undefined;

  /**
   * @param capacity most clients with a bucket of their own.
   * @param now milliseconds; the process's monotonic clock by default. One that goes back neither fills nor drains a bucket.
   */
  constructor({ max, window }: BucketLimit, capacity = 100_000, now?: () => number) {
    this.#limit = { max, window };
    this.#buckets = new BoundedTtlMap(capacity);
    this.#elapsed = steadyClock(now);
  }

  /** Clients that have a place, those with a full bucket that nobody has dropped yet included. */
  get size(): number {
    return this.#buckets.size;
  }

  take(key: string): TokenTake {
    const { granted, retryAfter } = this.#take(key, 1, 0);
    return granted === 1 ? ALLOWED : { allowed: false, retryAfter };
  }

  /** Tokens that are missing from a client's bucket, rounded up. */
  used(key: string): number {
    return Math.ceil(this.#limit.max - this.#take(key, 0, 0).left);
  }

  /** Takes tokens out of a client's bucket until it holds no more than so many; below zero: as many are owed. */
  lower(key: string, left: number): void {
    this.#take(key, 0, Math.max(this.#take(key, 0, 0).left - left, 0));
  }

  #take(key: string, n: number, debt: number): Taken {
    const now = this.#elapsed();
    // A full bucket that is still there is its client's own.
    const known = this.#buckets.get(key, Number.NEGATIVE_INFINITY) ?? this.#shared;
    const taken = takeFrom(known, this.#limit, { n, debt, now });
    const hasTaken = taken.granted > 0 || debt > 0;
    if (hasTaken && !this.#buckets.set(key, taken.bucket, now + taken.ttl, now)) this.#shared = taken.bucket;
    return taken;
  }
}
