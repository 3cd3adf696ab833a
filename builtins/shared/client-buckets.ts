import { type ClientBuckets, TokenBuckets, type TokenTake } from '../../lib/bounded/token-buckets.ts';
import type { BucketLimit, SharedState, StateArea, Workers } from '../../plugins-sdk/state.ts';

/** Milliseconds between two merges. */
const MERGE_INTERVAL_MS = 100;
/** Clients that are merged at once; more wait for their turn. */
const BATCH = 1000;
/** Clients whose spending may wait to be merged; that of others counts in this process only. */
const MOST_WAITING = 100_000;
/** A process may be so small a part of a limit ahead of what the engine knows: 16 processes together a quarter of it. */
const PARTS = 64;

/**
 * Rate limits by client for all processes that share an engine. This process's own buckets decide, at once, as long as the engine
 * knows what was spent here but for a small part of the limit. That is merged ten times a second, and what others have spent is
 * learned with it. Who spends faster is let in by the engine; a limit below 64 has no such part, and the engine decides always.
 *
 * So nobody gets more than his limit and that part of each process, and nobody less. While the engine is away, each process limits
 * by itself, and merges later.
 */
export class MergedBuckets implements ClientBuckets {
  readonly #limit: BucketLimit;
  readonly #area: Pick<StateArea, 'takeTokens'>;
  readonly #local: TokenBuckets;
  readonly #ahead: number;
  /** Tokens by client that the engine has not heard of. */
  #spent = new Map<string, number>();
  /** Tokens by client of which the engine is being told. */
  readonly #told = new Map<string, number>();
  /** Requests by client that wait until the engine can be asked for them. */
  readonly #waiting = new Map<string, ((take: TokenTake) => void)[]>();
  readonly #isAvailable: () => boolean;
  /** Whether some of it waits since the engine was away: what was spent long ago has flowed in again since. */
  #isLate = false;
  #timer: NodeJS.Timeout | undefined;

  /** @param isAvailable whether the engine answered when it was last asked. */
  constructor(limit: BucketLimit, area: Pick<StateArea, 'takeTokens'>, isAvailable: () => boolean) {
    this.#limit = limit;
    this.#area = area;
    this.#isAvailable = isAvailable;
    this.#local = new TokenBuckets(limit);
    this.#ahead = Math.floor(limit.max / PARTS);
  }

  take(key: string): TokenTake | Promise<TokenTake> {
    const take = this.#local.take(key);
    if (!take.allowed) return take;
    const ahead = (this.#spent.get(key) ?? 0) + (this.#told.get(key) ?? 0);
    if (ahead >= this.#ahead && this.#isAvailable()) return new Promise((answer) => this.#ask(key, answer));
    this.#owe(key, 1);
    return take;
  }

  used(key: string): number {
    return this.#local.used(key);
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
    this.#timer ??= setTimeout(() => this.#turn(), MERGE_INTERVAL_MS).unref();
  }

  /** Requests that come while one is asked for are asked for together. */
  #ask(key: string, answer: (take: TokenTake) => void): void {
    const waiting = this.#waiting.get(key);
    waiting?.push(answer);
    if (waiting !== undefined) return;
    this.#waiting.set(key, [answer]);
    void this.#answer(key);
  }

  async #answer(key: string): Promise<void> {
    for (;;) {
      const asked = this.#waiting.get(key) ?? [];
      if (asked.length === 0) break;
      this.#waiting.set(key, []);
      const debt = this.#spent.get(key) ?? 0;
      this.#spent.delete(key);
      // Without an answer this process limits by itself.
      const all = { granted: asked.length, retryAfter: 0 };
      const { granted, retryAfter } = (await this.#tell(key, debt, asked.length)) ?? all;
      for (const [index, answer] of asked.entries()) {
        const allowed = index < granted;
        answer({ allowed, retryAfter: allowed ? 0 : retryAfter });
      }
    }
    this.#waiting.delete(key);
  }

  async #turn(): Promise<void> {
    await this.#merge();
    this.#timer = this.#spent.size > 0 ? setTimeout(() => this.#turn(), MERGE_INTERVAL_MS).unref() : undefined;
  }

  async #merge(): Promise<void> {
    const merges: Promise<unknown>[] = [];
    this.#isLate ||= !this.#isAvailable();
    for (const [key, tokens] of this.#spent) {
      if (merges.length === BATCH || !this.#isAvailable()) break;
      this.#spent.delete(key);
      merges.push(this.#tell(key, this.#isLate ? Math.min(tokens, this.#local.used(key)) : tokens));
    }
    this.#isLate &&= this.#spent.size > 0;
    await Promise.all(merges);
  }

  /** Tells the engine what was spent here, asks it for more, and learns what others have spent. */
  async #tell(key: string, debt: number, n = 0) {
    const { max, window } = this.#limit;
    this.#told.set(key, (this.#told.get(key) ?? 0) + debt);
    try {
      const taken = await this.#area.takeTokens(`${max}/${window} ${key}`, this.#limit, n, debt);
      this.#local.lower(key, taken.left - (this.#spent.get(key) ?? 0));
      return taken;
    } catch {
      // It may have been merged, or be merged yet: merged twice, it would lock out a client that has kept to its limit.
      return undefined;
    } finally {
      const told = (this.#told.get(key) ?? 0) - debt;
      if (told > 0) this.#told.set(key, told);
      else this.#told.delete(key);
    }
  }
}

/**
 * Buckets for the clients of this process, or of all that share an engine; a worker has its part.
 * @param name of the limit.
 */
export function clientBuckets(
  limit: BucketLimit,
  stateEngine: SharedState | undefined,
  name: string,
  workers?: Pick<Workers, 'takeTokens'>,
): ClientBuckets {
  if (stateEngine?.processes === 'many')
    return new MergedBuckets(limit, stateEngine.area(name), () => stateEngine.available());
  if (workers === undefined) return new TokenBuckets(limit);
  const area: Pick<StateArea, 'takeTokens'> = {
    takeTokens: (key, ...rest) => workers.takeTokens(`${name} ${key}`, ...rest),
  };
  return new MergedBuckets(limit, area, () => true);
}
