import { steadyClock } from '../time/steady-clock.ts';
import { BoundedTtlMap } from './bounded-ttl-map.ts';

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

export interface TokenBucketsOptions {
  /** Tokens in a full bucket, and tokens that flow in per `window`. */
  readonly max: number;
  /** Milliseconds in which an empty bucket fills up. */
  readonly window: number;
  /** Most clients with a bucket of their own; 100,000 by default. */
  readonly capacity?: number;
  /** Milliseconds; the process's monotonic clock by default. One that goes back neither fills nor drains a bucket. */
  readonly now?: () => number;
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
 *
 * Arithmetic is exact in integers. Time is counted in tokens' worth of it, `max` units to the millisecond and `window`
 * units to the token. A bucket is kept as the one moment at which it will be full (the generic cell rate algorithm
 * of ITU-T I.371).
 */
export class TokenBuckets implements ClientBuckets {
  readonly #max: number;
  readonly #window: number;
  readonly #elapsed: () => number;
  readonly #fullAt: BoundedTtlMap<number>;
  /** When the bucket that clients without a place share will be full. */
  #sharedFullAt = 0;

  /** @throws RangeError when `max`, `window` or `capacity` is no positive integer. */
  constructor({ max, window, capacity = 100_000, now }: TokenBucketsOptions) {
    this.#max = positiveInteger('max', max);
    this.#window = positiveInteger('window', window);
    this.#fullAt = new BoundedTtlMap(positiveInteger('capacity', capacity));
    this.#elapsed = steadyClock(now);
  }

  /** Clients that have a place, those with a full bucket that nobody has dropped yet included. */
  get size(): number {
    return this.#fullAt.size;
  }

  take(key: string): TokenTake {
    const now = this.#elapsed() * this.#max;
    const fullAt = Math.max(this.#fullAtOf(key), now);
    const missing = fullAt - now + this.#window - this.#max * this.#window;
    if (missing > 0) return { allowed: false, retryAfter: Math.ceil(missing / this.#max) };
    this.#keep(key, fullAt + this.#window, now);
    return ALLOWED;
  }

  /** Tokens that are missing from a client's bucket, rounded up. */
  used(key: string): number {
    const now = this.#elapsed() * this.#max;
    return Math.max(Math.ceil((this.#fullAtOf(key) - now) / this.#window), 0);
  }

  /** Takes tokens out of a client's bucket until it holds no more than so many; below zero: as many are owed. */
  lower(key: string, left: number): void {
    const now = this.#elapsed() * this.#max;
    const fullAt = now + Math.ceil((this.#max - left) * this.#window);
    if (fullAt > Math.max(this.#fullAtOf(key), now)) this.#keep(key, fullAt, now);
  }

  /** A full bucket that is still there is its client's own. */
  #fullAtOf(key: string): number {
    return this.#fullAt.get(key, Number.NEGATIVE_INFINITY) ?? this.#sharedFullAt;
  }

  #keep(key: string, fullAt: number, now: number): void {
    if (!this.#fullAt.set(key, fullAt, fullAt, now)) this.#sharedFullAt = fullAt;
  }
}

function positiveInteger(name: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new RangeError(`${name} must be a positive integer, not ${value}`);
  }
  return value;
}
