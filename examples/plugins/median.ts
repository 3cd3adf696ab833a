/**
 * Answers with the median of several upstreams, each of which sends a number or an object that holds one. More than half of
 * them have to answer. The query is that of the endpoint.
 *
 * The endpoint's ID does not tell the URLs: clients trust the operator to ask them.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./median.ts
 * apis:
 *   - name: prices
 *     url: https://a.example.com # not called for endpoints with a median
 *     endpoints:
 *       - name: eth-usd
 *         path: /price
 *         encoding: { type: int256, path: $.median, times: '1e18' }
 *         median:
 *           urls: ['https://a.example.com/price', 'https://b.example.com/v2', 'https://c.example.com/eth']
 *           member: price
 * ```
 */
import {
  configKey,
  createHttpClient,
  definePlugin,
  millisecondsSchema,
  Refusal,
  Type,
} from 'signed-data-proxy/plugins-sdk';

const medianKey = configKey(
  'endpoint',
  'median',
  Type.Optional(
    Type.Object(
      {
        urls: Type.Array(Type.String({ pattern: '^https?://[^?#]+$' }), { minItems: 2, description: 'Who is asked' }),
        member: Type.Optional(Type.String({ description: 'Member that holds the number; default none' })),
        timeout: Type.Optional(millisecondsSchema('Milliseconds for all of them; default 5000')),
      },
      { additionalProperties: false },
    ),
  ),
);

/** @throws Error unless a number is there. */
function numberIn(body: Buffer, member?: string): number {
  const data: unknown = JSON.parse(body.toString());
  const value: unknown = member === undefined ? data : Object(data)[member];
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new Error('no number');
  return value;
}

/** The one in the middle, or the mean of the two. */
function medianOf(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  const [low = 0, high = low] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return (low + high) / 2;
}

export default definePlugin({
  name: 'median',
  // Its timeout bounds it.
  budget: 'none',
  keys: [medianKey],
  setup() {
    const client = createHttpClient();
    return {
      stop: () => client.close(),
      hooks: {
        callApi: async ({ url: asked }, exchange) => {
          const configured = medianKey.of(exchange.endpoint);
          if (configured === undefined) return undefined;
          const { urls, member, timeout = 5000 } = configured;
          const { search } = new URL(asked);
          const calls = urls.map(async (url) => {
            const request = { method: 'GET', url: url + search, timeout, maxBytes: 65_536 };
            const { status, body } = await client.request({ ...request, signal: exchange.client });
            if (status !== 200) throw new Error(`status ${status}`);
            return numberIn(body, member);
          });
          const results = await Promise.allSettled(calls);
          const numbers = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
          if (numbers.length * 2 <= urls.length) {
            const why = results.flatMap((result) => (result.status === 'rejected' ? [String(result.reason)] : []));
            throw new Refusal(502, 'API call failed', { reason: why.join('; ') });
          }
          return { status: 200, data: { median: medianOf(numbers) } };
        },
      },
    };
  },
});
