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

/** The state of one limit, a token bucket, for one client. */
export interface LimitState {
  /** The limit's name in the headers: letters only, nothing of a client or of the config. */
  readonly name: 'address' | 'key';
  readonly max: number;
  /** Milliseconds in which `max` requests are allowed. */
  readonly window: number;
  /** Tokens that are missing from the client's bucket. */
  readonly used: number;
}

type Headers = Readonly<Record<string, string>>;

/** The names of the headers. */
export const LIMIT_HEADERS = ['RateLimit-Policy', 'RateLimit'] as const;

const seconds = (milliseconds: number) => Math.ceil(milliseconds / 1000);

function headersOf({ name, max, window, used }: LimitState): Record<(typeof LIMIT_HEADERS)[number], string> {
  const left = Math.min(Math.max(Math.floor(max - used), 0), max);
  const untilFull = Math.max(seconds((used * window) / max), 0);
  return {
    'RateLimit-Policy': `"${name}";q=${max};w=${seconds(window)}`,
    RateLimit: `"${name}";r=${left};t=${untilFull}`,
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
      const added = Object.entries(headersOf(state)).map(([name, item]) => {
        const before = headers[name];
        return [name, before === undefined ? item : `${before}, ${item}`];
      });
      return Object.fromEntries(added);
    },
  };
}
