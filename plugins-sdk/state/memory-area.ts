import { BoundedTtlMap } from '../../lib/bounded/bounded-ttl-map.ts';
import { type Bucket, type BucketLimit, type Taken, takeFrom } from '../../lib/bounded/token-buckets.ts';
import { type CompareAndSetOptions, type Conflict, type StateArea, StateUnavailable } from './area.ts';

/** The options of a {@link MemoryArea}. */
export interface MemoryAreaOptions {
  /** Most keys held at once; 100,000 by default. */
  readonly capacity?: number;
  /** Returns the time in milliseconds; `Date.now` by default. */
  readonly now?: () => number;
}

/** A state area in memory, lost with the process. It is the reference for engines. */
export class MemoryArea implements StateArea {
  readonly #values: BoundedTtlMap<string>;
  readonly #buckets: BoundedTtlMap<Bucket>;
  readonly #now: () => number;

  constructor({ capacity = 100_000, now = Date.now }: MemoryAreaOptions = {}) {
    this.#values = new BoundedTtlMap(capacity);
    this.#buckets = new BoundedTtlMap(capacity);
    this.#now = now;
  }

  /** Number of keys with a value, including expired ones that are not dropped yet; at most the capacity. */
  get size(): number {
    return this.#values.size;
  }

  async get(key: string): Promise<string | undefined> {
    return this.#values.get(key, this.#now());
  }

  /** Does as {@link StateArea.compareAndSet} says. @throws StateUnavailable if there is no room for another key. */
  async compareAndSet(
    key: string,
    expected: string | undefined,
    next: string | undefined,
    { ttl = Number.POSITIVE_INFINITY, keepLonger = false }: CompareAndSetOptions = {},
  ): Promise<Conflict | undefined> {
    const [values, now] = [this.#values, this.#now()];
    const value = values.get(key, now);
    if (value !== expected) return value === undefined ? {} : { value };
    const least = keepLonger ? (values.expiry(key, now) ?? 0) : 0;
    if (next === undefined) values.delete(key);
    else if (!values.set(key, next, Math.max(now + ttl, least), now))
      throw new StateUnavailable('no room for another key among those that are still live');
    return undefined;
  }

  /** Does as {@link StateArea.takeTokens} says. @throws StateUnavailable if there is no room for another bucket. */
  async takeTokens(key: string, limit: BucketLimit, n = 1, debt = 0): Promise<Taken> {
    const now = this.#now();
    const { bucket, ttl, ...taken } = takeFrom(this.#buckets.get(key, now), limit, { n, debt, now });
    if (!this.#buckets.set(key, bucket, now + ttl, now))
      throw new StateUnavailable('no room for another bucket among those that are in use');
    return taken;
  }
}
