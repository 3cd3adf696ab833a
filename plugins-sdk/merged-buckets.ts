import type { BucketLimit, SharedState, StateArea } from './state-area.ts';
import { type ClientBuckets, TokenBuckets, type TokenTake } from './token-buckets.ts';

/** Milliseconds between two merges. */
const PERIOD = 100;
/** Clients that are merged at once; more wait for their turn. */
const BATCH = 1000;
/** Clients whose spending may wait to be merged; that of others counts in this process only. */
const MOST_WAITING = 100_000;

/**
 * Rate limits by client for all processes that share an engine. This process's own buckets decide, at once; what was spent here
 * is merged ten times a second, and what others have spent is learned with it. So a client may have somewhat more than its limit
 * in a short burst, which it has less afterwards. While the engine is away, each process limits by itself, and merges later.
 */
export class MergedBuckets implements ClientBuckets {
  readonly #limit: BucketLimit;
  readonly #area: StateArea;
  readonly #local: TokenBuckets;
  /** Tokens by client that the engine has not heard of. */
  #spent = new Map<string, number>();
  readonly #isAvailable: () => boolean;
  /** Whether some of it waits since the engine was away: what was spent long ago has flowed in again since. */
  #isLate = false;
  #timer: NodeJS.Timeout | undefined;

  /** @param isAvailable whether the engine answered when it was last asked. */
  constructor(limit: BucketLimit, area: StateArea, isAvailable: () => boolean) {
    this.#limit = limit;
    this.#area = area;
    this.#isAvailable = isAvailable;
    this.#local = new TokenBuckets(limit);
  }

  take(key: string): TokenTake {
    const take = this.#local.take(key);
    if (take.allowed) this.#owe(key, 1);
    return take;
  }

  /** Merges what is left. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#merge();
    clearTimeout(this.#timer);
  }

  #owe(key: string, tokens: number): void {
    const owed = this.#spent.get(key);
    if (owed === undefined && this.#spent.size >= MOST_WAITING) return;
    this.#spent.set(key, (owed ?? 0) + tokens);
    this.#timer ??= setTimeout(() => this.#turn(), PERIOD).unref();
  }

  async #turn(): Promise<void> {
    await this.#merge();
    this.#timer = this.#spent.size > 0 ? setTimeout(() => this.#turn(), PERIOD).unref() : undefined;
  }

  async #merge(): Promise<void> {
    const merges: Promise<void>[] = [];
    this.#isLate ||= !this.#isAvailable();
    for (const [key, tokens] of this.#spent) {
      if (merges.length === BATCH || !this.#isAvailable()) break;
      this.#spent.delete(key);
      merges.push(this.#mergeOne(key, this.#isLate ? Math.min(tokens, this.#local.used(key)) : tokens));
    }
    this.#isLate &&= this.#spent.size > 0;
    await Promise.all(merges);
  }

  async #mergeOne(key: string, debt: number): Promise<void> {
    const { max, window } = this.#limit;
    try {
      const { left } = await this.#area.take(`${max}/${window} ${key}`, this.#limit, 0, debt);
      this.#local.lower(key, left - (this.#spent.get(key) ?? 0));
    } catch {
      // It may have been merged, or be merged yet: merged twice, it would lock out a client that has kept to its limit.
    }
  }
}

/** Buckets for the clients of this process, or of all that share an engine. @param name of the limit. */
export function clientBuckets(limit: BucketLimit, shared: SharedState | undefined, name: string): ClientBuckets {
  return shared?.processes === 'many'
    ? new MergedBuckets(limit, shared.area(name), () => shared.available())
    : new TokenBuckets(limit);
}
