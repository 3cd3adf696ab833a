import { optionalKey } from '../../plugins-sdk/config.ts';
import { ContextKey, type Exchange, Type } from '../../plugins-sdk/index.ts';

/** Of the plugin `rate-limit`; others only read it. */
export const headersKey = optionalKey(
  'server',
  'rateLimit.headers',
  Type.Boolean({
    description:
      'Sends RateLimit and RateLimit-Policy; default true where max or window is set, and for keys with a rateLimit',
  }),
);

/** What one limit says of one client. */
export interface LimitState {
  /** What it is called in the headers: letters only, nothing of a client or of the config. */
  readonly name: 'address' | 'key';
  readonly max: number;
  /** Milliseconds in which so many are allowed. */
  readonly window: number;
  /** Requests that are left. */
  readonly left: number;
  /** Milliseconds until all of them are there again. */
  readonly resetIn: number;
}

type Headers = Readonly<Record<string, string>>;

export const LIMIT_HEADERS = ['RateLimit-Policy', 'RateLimit'] as const;

const seconds = (milliseconds: number) => Math.ceil(milliseconds / 1000);

function itemsOf({ name, max, window, left, resetIn }: LimitState): readonly [policy: string, state: string] {
  const remaining = Math.min(Math.max(Math.floor(left), 0), max);
  return [`"${name}";q=${max};w=${seconds(window)}`, `"${name}";r=${remaining};t=${Math.max(seconds(resetIn), 0)}`];
}

/** Of a bucket that fills up in the window. @param used tokens that are missing. */
export function bucketState(
  name: LimitState['name'],
  { max, window }: Pick<LimitState, 'max' | 'window'>,
  used: number,
): LimitState {
  return { name, max, window, left: max - used, resetIn: (used * window) / max };
}

/** The headers `RateLimit` and `RateLimit-Policy` of IETF's draft (draft-ietf-httpapi-ratelimit-headers), of one plugin's limits. */
export function limitHeaders(plugin: string) {
  const noted = new ContextKey<readonly LimitState[]>(`limits of ${plugin}`);
  return {
    note: (exchange: Exchange, states: readonly LimitState[]) => noted.set(exchange, states),
    /** For the stage `respond`: adds to what another plugin has said of its limits. */
    respond: (headers: Headers, exchange: Exchange): Headers | undefined => {
      const items = noted.get(exchange)?.map(itemsOf);
      if (items === undefined) return undefined;
      return Object.fromEntries(
        LIMIT_HEADERS.map((name, index) => {
          const before = headers[name];
          return [name, [...(before === undefined ? [] : [before]), ...items.map((item) => item[index])].join(', ')];
        }),
      );
    },
  };
}
