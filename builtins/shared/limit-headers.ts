import { optionalKey } from '../../plugins-sdk/config.ts';
import { ContextKey, type Exchange, Type } from '../../plugins-sdk/index.ts';

/** A config key of the plugin `rate-limit`; other plugins only read it. */
export const headersKey = optionalKey(
  'server',
  'rateLimit.headers',
  Type.Boolean({
    description:
      'Sends RateLimit and RateLimit-Policy; default true where max or window is set, and for keys with a rateLimit',
  }),
);

/** The state of one limit for one client. */
export interface LimitState {
  /** The limit's name in the headers: letters only, nothing of a client or of the config. */
  readonly name: 'address' | 'key';
  readonly max: number;
  /** Milliseconds in which `max` requests are allowed. */
  readonly window: number;
  /** Requests that the client has left. */
  readonly left: number;
  /** Milliseconds until all `max` requests are allowed again. */
  readonly resetIn: number;
}

type Headers = Readonly<Record<string, string>>;

/** The names of the headers. */
export const LIMIT_HEADERS = ['RateLimit-Policy', 'RateLimit'] as const;

const seconds = (milliseconds: number) => Math.ceil(milliseconds / 1000);

function headersOf({ name, max, window, left, resetIn }: LimitState): Record<(typeof LIMIT_HEADERS)[number], string> {
  const remaining = Math.min(Math.max(Math.floor(left), 0), max);
  return {
    'RateLimit-Policy': `"${name}";q=${max};w=${seconds(window)}`,
    RateLimit: `"${name}";r=${remaining};t=${Math.max(seconds(resetIn), 0)}`,
  };
}

/** Returns the state of a token bucket. @param used tokens that are missing. */
export function bucketState(
  name: LimitState['name'],
  { max, window }: Pick<LimitState, 'max' | 'window'>,
  used: number,
): LimitState {
  return { name, max, window, left: max - used, resetIn: (used * window) / max };
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
      const added = Object.entries(headersOf(state)).map(([name, item]) => {
        const before = headers[name];
        return [name, before === undefined ? item : `${before}, ${item}`];
      });
      return Object.fromEntries(added);
    },
  };
}
