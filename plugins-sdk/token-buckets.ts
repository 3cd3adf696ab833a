import { BoundedTtlMap } from './bounded-ttl-map.ts';
import { steadyClock } from './steady-clock.ts';

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
 * A bucket that is full again is as good as absent and gives up its place. No other bucket ever does: clients that find
 * no place share one bucket, so that a flood of addresses resets nobody.
 *
 * Arithmetic is exact in integers: time is counted in tokens' worth of it, `max` units to the millisecond and `window`
 * units to the token, and a bucket is kept as the one moment at which it will be full (the generic cell rate algorithm
 * of ITU-T I.371).
 */
export class TokenBuckets implements ClientBuckets {
  readonly #max: number;
  readonly #window: number;
  readonly #elapsed: () => number;
  readonly #fullAt: BoundedTtlMap<number>;
  #sharedFullAt = 0;

  /** @throws RangeError when `max`, `window` or `capacity` is no positive integer. */
  constructor({ max, window, capacity = 100_000, now }: TokenBucketsOptions) {
    this.#max = positiveInteger('max', max);
    this.#window = positiveInteger('window', window);
    this.#fullAt = new BoundedTtlMap(capacity);
    this.#elapsed = steadyClock(now);
  }

  /** Clients that have a bucket of their own, full ones that nobody has dropped yet included. */
  get size(): number {
    return this.#fullAt.size;
  }

  take(key: string): TokenTake {
    const now = this.#elapsed() * this.#max;
    const own = this.#fullAt.get(key, now);
    if (own !== undefined) {
      return this.#draw(own, now, (fullAt) => this.#fullAt.set(key, fullAt, fullAt, now));
    }
    const afterOne = now + this.#window;
    if (this.#fullAt.set(key, afterOne, afterOne, now)) {
      return ALLOWED;
    }
    return this.#draw(Math.max(this.#sharedFullAt, now), now, (fullAt) => {
      this.#sharedFullAt = fullAt;
    });
  }

  #draw(fullAt: number, now: number, save: (fullAt: number) => void): TokenTake {
    const missing = fullAt - now + this.#window - this.#max * this.#window;
    if (missing > 0) {
      return { allowed: false, retryAfter: Math.ceil(missing / this.#max) };
    }
    save(fullAt + this.#window);
    return ALLOWED;
  }
}

function positiveInteger(name: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new RangeError(`${name} must be a positive integer, not ${value}`);
  }
  return value;
}
