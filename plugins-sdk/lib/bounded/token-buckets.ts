import { steadyClock } from '../time/steady-clock.ts';
import { BoundedTtlMap } from './bounded-ttl-map.ts';
import { CountMinSketch } from './count-min-sketch.ts';

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

/** Cells in a row of the sketch, for each place in the table. */
const CELLS_PER_PLACE = 3;

/**
 * A token bucket for each client, in bounded memory.
 *
 * A bucket that is full again is as good as absent and gives up its place. No other bucket ever does. Clients that find no
 * place are counted in a sketch (9.6 MB by default, and none before the table is full or once all its buckets are). So:
 *
 * - Nobody is ever let in more often than a bucket of his own would let him, whoever else comes and however many they are.
 *   A flood of addresses resets nobody.
 * - A client with a place is counted exactly.
 * - A new client without a place is refused by mistake only where others have emptied its cell in each of the four rows of
 *   the sketch. A cell is empty only if `max` tokens of it were drawn in the last `window`. When all clients without a
 *   place have drawn T, the probability is at most (T / (300,000 × max))⁴. An example: 15,000 strangers too many, with one request
 *   each, shut out one new client of 160,000 where `max` is 1.
 *
 * Arithmetic is exact in integers. Time is counted in tokens' worth of it, `max` units to the millisecond and `window`
 * units to the token. A bucket is kept as the one moment at which it will be full (the generic cell rate algorithm
 * of ITU-T I.371).
 */
export class TokenBuckets implements ClientBuckets {
  readonly #max: number;
  readonly #window: number;
  readonly #capacity: number;
  readonly #elapsed: () => number;
  readonly #fullAt: BoundedTtlMap<number>;
  /** When the buckets of those without a place will be full. */
  #crowd: CountMinSketch | undefined;
  /** When the last of them will be. */
  #crowdFullAt = 0;

  /** @throws RangeError when `max`, `window` or `capacity` is no positive integer. */
  constructor({ max, window, capacity = 100_000, now }: TokenBucketsOptions) {
    this.#max = positiveInteger('max', max);
    this.#window = positiveInteger('window', window);
    this.#capacity = positiveInteger('capacity', capacity);
    this.#fullAt = new BoundedTtlMap(capacity);
    this.#elapsed = steadyClock(now);
  }

  /** Clients that have a place, those with a full bucket that nobody has dropped yet included. */
  get size(): number {
    return this.#fullAt.size;
  }

  take(key: string): TokenTake {
    const now = this.#elapsed() * this.#max;
    if (now >= this.#crowdFullAt) this.#crowd = undefined;
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

  /** A full bucket that is still there says more than the sketch does. */
  #fullAtOf(key: string): number {
    return this.#fullAt.get(key, Number.NEGATIVE_INFINITY) ?? this.#crowd?.bound(key) ?? 0;
  }

  #keep(key: string, fullAt: number, now: number): void {
    if (this.#fullAt.set(key, fullAt, fullAt, now)) return;
    this.#crowd ??= new CountMinSketch(CELLS_PER_PLACE * this.#capacity);
    this.#crowd.raise(key, fullAt);
    this.#crowdFullAt = Math.max(this.#crowdFullAt, fullAt);
  }
}

function positiveInteger(name: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new RangeError(`${name} must be a positive integer, not ${value}`);
  }
  return value;
}
