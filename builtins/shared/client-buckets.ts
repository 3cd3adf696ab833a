import { type ClientBuckets, TokenBuckets } from '../../lib/bounded/token-buckets.ts';
import { millisecondsSchema, optionalKey } from '../../plugins-sdk/config.ts';
import { ContextKey, type Exchange, type Services, Type } from '../../plugins-sdk/index.ts';
import {
  type BucketLimit,
  type SharedState,
  type StateArea,
  StateKey,
  type Taken,
  type Workers,
} from '../../plugins-sdk/state.ts';

/** Default length of the window, in milliseconds. */
const DEFAULT_WINDOW_MS = 60_000;
/** Milliseconds between two reports of spent tokens to the engine. */
const MERGE_INTERVAL_MS = 100;
/** The most clients with unreported tokens; for further clients the engine is asked at once. */
const MOST_WAITING = 1000;
/** A process may leave 1/64 of a limit unreported, so 16 processes together exceed it by a quarter at most. */
const PARTS = 64;

/** A client's tokens that the engine does not know of yet. */
interface Ahead {
  spent: number;
  /** The number of commands to the engine under way. */
  asks: number;
}

/**
 * Rate limits by client for all processes that share an engine.
 * This process decides alone while only a small part of the limit (1/64) is unreported, and reports ten times a second.
 * Beyond that part the engine decides; for a limit below 64 it always does. While the engine is unreachable, each process
 * limits by itself, and reports nothing of that later.
 */
export class MergedBuckets implements ClientBuckets {
  readonly #limit: BucketLimit;
  readonly #area: Pick<StateArea, 'takeTokens'>;
  readonly #isAvailable: () => boolean;
  /** The buckets of this process, which decide alone while the engine is unreachable. */
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

  take(key: string): Taken | Promise<Taken> {
    const take = this.#local.take(key);
    if (take.granted === 0 || !this.#isAvailable()) return take;
    const own = this.#ahead.get(key) ?? { spent: 0, asks: 0 };
    const mayWait = this.#ahead.has(key) || this.#ahead.size < MOST_WAITING;
    if (!mayWait || own.asks > 0 || own.spent >= this.#most) return this.#ask(key, take);
    own.spent += 1;
    this.#ahead.set(key, own);
    this.#timer ??= setTimeout(() => this.#merge(), MERGE_INTERVAL_MS).unref();
    return take;
  }

  /** Asks the engine for a token. @param otherwise the decision if the engine fails. */
  async #ask(key: string, otherwise: Taken): Promise<Taken> {
    const { granted, retryAfter, left } = (await this.#tell(key, 1)) ?? otherwise;
    // An operator's engine may grant what is no number: that is no token.
    return { granted: granted > 0 ? 1 : 0, retryAfter, left };
  }

  #merge(): void {
    this.#timer = undefined;
    for (const [key, { spent }] of this.#ahead) if (spent > 0) void this.#tell(key, 0);
  }

  /** Reports this process's spent tokens to the engine, asks for `n` more, and learns the other processes' spending. */
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
      // The engine may have done it all the same. Reported twice, a client that kept to its limit would be locked out.
      return undefined;
    } finally {
      own.asks -= 1;
      if (own.asks === 0) this.#ahead.delete(key);
    }
  }
}

/**
 * Makes buckets for the clients of this process, or of all processes that share an engine. Without an engine, each worker gets
 * its share of the limit.
 * @param name the limit's name.
 */
export function clientBuckets(
  limit: BucketLimit,
  stateEngine: SharedState | undefined,
  name: string,
  workers: Pick<Workers, 'count'> = { count: 1 },
): ClientBuckets {
  if (stateEngine !== undefined) return new MergedBuckets(limit, stateEngine.area(name), () => stateEngine.available());
  return new TokenBuckets({ ...limit, max: Math.ceil(limit.max / workers.count) });
}

/**
 * Makes the config keys of a limit by client address, and its buckets, which a reload keeps unless the limit changes.
 * @param name the limit's name. @param path the config path under `server`, with `window` and `max` below it.
 * @param what the things that are counted, in the plural. @param most the default limit per client and window.
 */
export function addressLimit(name: string, path: string, what: string, most: number) {
  const window = optionalKey('server', `${path}.window`, millisecondsSchema('Length of the window; default 1m'));
  const description = `${what} per window; default ${most}`;
  const max = optionalKey('server', `${path}.max`, Type.Integer({ minimum: 1, maximum: 1_000_000_000, description }));
  const kept = new StateKey<ClientBuckets>(`${name} buckets`);
  return {
    keys: [window, max],
    in({ config, states, stateEngine, workers }: Services) {
      const limit = { max: max.in(config) ?? most, window: window.in(config) ?? DEFAULT_WINDOW_MS };
      const make = () => clientBuckets(limit, stateEngine, name, workers);
      return { limit, buckets: states.keep(kept, JSON.stringify(limit), make) };
    },
  };
}

/** A config key of the plugin `rate-limit`; other plugins only read it. */
export const headersKey = optionalKey(
  'server',
  'rateLimit.headers',
  Type.Boolean({
    description:
      'Sends RateLimit and RateLimit-Policy; default true where max or window is set, and for keys with a rateLimit',
  }),
);

/** The state of one limit, a token bucket, for one client. Its `window` is in milliseconds. */
export interface LimitState extends BucketLimit {
  /** The limit's name in the headers: letters only, nothing of a client or of the config. */
  readonly name: 'address' | 'key';
  /** Tokens left in the client's bucket, fractions included. */
  readonly left: number;
}

type Headers = Readonly<Record<string, string>>;

/** The names of the headers. */
export const LIMIT_HEADERS = ['RateLimit-Policy', 'RateLimit'] as const;

const seconds = (milliseconds: number) => Math.ceil(milliseconds / 1000);

function headersOf({ name, max, window, left }: LimitState): Record<(typeof LIMIT_HEADERS)[number], string> {
  const whole = Math.floor(left);
  const untilFull = Math.max(seconds(((max - whole) * window) / max), 0);
  return {
    'RateLimit-Policy': `"${name}";q=${max};w=${seconds(window)}`,
    RateLimit: `"${name}";r=${Math.min(Math.max(whole, 0), max)};t=${untilFull}`,
  };
}

/** Makes the headers `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers) for one plugin's limit. */
export function limitHeaders(plugin: string) {
  const noted = new ContextKey<LimitState>(`limit of ${plugin}`);
  return {
    note: (exchange: Exchange, state: LimitState) => noted.set(exchange, state),
    /** Adds the headers at the stage `respond`, after the limits of other plugins. */
    respond: (headers: Headers, exchange: Exchange): Headers | undefined => {
      const state = noted.get(exchange);
      if (state === undefined) return undefined;
      const added = headersOf(state);
      for (const name of LIMIT_HEADERS)
        if (headers[name] !== undefined) added[name] = `${headers[name]}, ${added[name]}`;
      return added;
    },
  };
}
