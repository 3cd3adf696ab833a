import { type ClientBuckets, TokenBuckets, type TokenTake } from '../../lib/bounded/token-buckets.ts';
import type { BucketLimit, SharedState, StateArea, Taken, Workers } from '../../plugins-sdk/state.ts';

/** Milliseconds for which spending waits until the engine is told. */
const MERGE_INTERVAL_MS = 100;
/** Clients whose spending may wait; the engine is asked at once for those of others. */
const MOST_WAITING = 1000;
/** A process may be so small a part of a limit ahead of what the engine knows: 16 processes together a quarter of it. */
const PARTS = 64;

/** What the engine does not know of a client. */
interface Ahead {
  spent: number;
  /** Questions to the engine that are under way. */
  asks: number;
}

/**
 * Rate limits by client for all processes that share an engine. This process decides at once as long as the engine knows what was
 * spent here but for a small part of the limit; it is told ten times a second. Beyond that part the engine decides, and always for a
 * limit below 64, which has no such part. While the engine is away, each process limits by itself, and tells it nothing later.
 */
export class MergedBuckets implements ClientBuckets {
  readonly #limit: BucketLimit;
  readonly #area: Pick<StateArea, 'takeTokens'>;
  readonly #isAvailable: () => boolean;
  /** What this process knows, which is all that counts while the engine is away. */
  readonly #local: TokenBuckets;
  readonly #most: number;
  readonly #ahead = new Map<string, Ahead>();
  #timer: NodeJS.Timeout | undefined;

  /** @param isAvailable whether the engine answered when it was last asked. */
  constructor(limit: BucketLimit, area: Pick<StateArea, 'takeTokens'>, isAvailable: () => boolean) {
    this.#limit = limit;
    this.#area = area;
    this.#isAvailable = isAvailable;
    this.#local = new TokenBuckets(limit);
    this.#most = Math.floor(limit.max / PARTS);
  }

  take(key: string): TokenTake | Promise<TokenTake> {
    const take = this.#local.take(key);
    if (!take.allowed || !this.#isAvailable()) return take;
    const own = this.#ahead.get(key) ?? { spent: 0, asks: 0 };
    const mayWait = this.#ahead.has(key) || this.#ahead.size < MOST_WAITING;
    if (!mayWait || own.asks > 0 || own.spent >= this.#most) return this.#ask(key, take);
    own.spent += 1;
    this.#ahead.set(key, own);
    this.#timer ??= setTimeout(() => this.#merge(), MERGE_INTERVAL_MS).unref();
    return take;
  }

  used(key: string): number {
    return this.#local.used(key);
  }

  /** @param otherwise what this process says by itself. */
  async #ask(key: string, otherwise: TokenTake): Promise<TokenTake> {
    const taken = await this.#tell(key, 1);
    return taken === undefined ? otherwise : { allowed: taken.granted > 0, retryAfter: taken.retryAfter };
  }

  #merge(): void {
    this.#timer = undefined;
    for (const [key, { spent }] of this.#ahead) if (spent > 0) void this.#tell(key, 0);
  }

  /** Tells the engine what was spent here, asks it for more, and learns what others have spent. */
  async #tell(key: string, n: number): Promise<Taken | undefined> {
    const { max, window } = this.#limit;
    const own = this.#ahead.get(key) ?? { spent: 0, asks: 0 };
    this.#ahead.set(key, own);
    const debt = own.spent;
    own.spent = 0;
    own.asks += 1;
    try {
      const taken = await this.#area.takeTokens(`${max}/${window} ${key}`, this.#limit, n, debt);
      this.#local.lower(key, taken.left);
      return taken;
    } catch {
      // It may have heard all the same: told twice, it would lock out a client that has kept to its limit.
      return undefined;
    } finally {
      own.asks -= 1;
      if (own.asks === 0) this.#ahead.delete(key);
    }
  }
}

/**
 * Buckets for the clients of this process, or of all that share an engine; a worker without one lets in its part.
 * @param name of the limit.
 */
export function clientBuckets(
  limit: BucketLimit,
  stateEngine: SharedState | undefined,
  name: string,
  workers: Pick<Workers, 'count'> = { count: 1 },
): ClientBuckets {
  if (stateEngine?.processes === 'many')
    return new MergedBuckets(limit, stateEngine.area(name), () => stateEngine.available());
  const max = Math.ceil(limit.max / workers.count);
  const own = new TokenBuckets({ ...limit, max });
  return { take: (key) => own.take(key), used: (key) => limit.max - max + own.used(key) };
}
