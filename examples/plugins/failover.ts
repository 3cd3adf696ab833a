/**
 * Asks another origin when one fails: path, query, headers and body stay. An origin that has failed is asked after the others
 * for a while.
 *
 * The other origins get the same headers, credentials included. The endpoint's ID does not tell of them: clients trust the
 * operator to name upstreams that mean the same. List it before plugins that sign requests.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./failover.ts
 *       config: { rest: 30s } # the default
 * apis:
 *   - url: https://a.example.com/v1
 *     failover: ['https://b.example.com', 'https://c.example.com'] # endpoints may have a value of their own
 * ```
 */
import { configKey, definePlugin, isRefusal, millisecondsSchema, type Taps, Type } from 'signed-data-proxy/plugins-sdk';

const origin = Type.String({
  pattern: '^https?://[^/?#@\\s]+$',
  description: 'an origin such as https://b.example.com',
});
const failover = configKey('shared', 'failover', Type.Optional(Type.Array(origin, { minItems: 1 })));

export const configSchema = Type.Object({
  rest: Type.Optional(millisecondsSchema('Milliseconds for which an origin that failed comes last; default 30000')),
});

/** A 4xx says something about the request, which the others would say, too; a 429 does not. */
function isElsewhereBetter(error: unknown): boolean {
  return isRefusal(error) && error.status === 502 && !/^4(?!29)/.test(`${error.upstreamStatus}`);
}

export default definePlugin({
  name: 'failover',
  configSchema,
  keys: [failover],
  setup({ now }, { rest = 30_000 }) {
    const failedAt = new Map<string, number>();
    const rests = (origin: string) => Number(now() - (failedAt.get(origin) ?? 0) < rest);
    const callApi: Taps['callApi'] = async (request, { endpoint }, { next, signal }) => {
      const [own = ''] = /^https?:..[^/?]+/i.exec(request.url) ?? [];
      const origins = [own, ...(failover.of(endpoint) ?? [])].toSorted((a, b) => rests(a) - rests(b));
      let failure: unknown;
      for (const origin of origins) {
        try {
          return await next({ ...request, url: origin + request.url.slice(own.length) });
        } catch (error) {
          if (signal.aborted || !isElsewhereBetter(error)) throw error;
          failedAt.set(origin, now());
          failure = error;
        }
      }
      throw failure;
    };
    return { hooks: { callApi } };
  },
});
