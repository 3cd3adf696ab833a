/**
 * Answers with the median of several upstreams. Each sends a number or an object that holds one, and more than half must
 * answer. They get the endpoint's method, query, headers and body, credentials included. Each call has the API's `timeout` and
 * takes a slot.
 *
 * The endpoint ID does not cover the URLs, so clients must trust the operator to ask them.
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
import { configKey, definePlugin, Refusal, Type } from 'signed-data-proxy/plugins-sdk';

const config = Type.Object(
  {
    urls: Type.Array(Type.String({ pattern: '^https?://[^?#@\\s]+$' }), { minItems: 2, description: 'Who is asked' }),
    member: Type.Optional(Type.String({ description: 'Member that holds the number; default none' })),
  },
  { additionalProperties: false },
);
const median = configKey('endpoint', 'median', Type.Optional(config));

/** Returns the middle number, or the mean of the two in the middle. */
function middleOf(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  const [low = 0, high = low] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return (low + high) / 2;
}

export default definePlugin({
  name: 'median',
  keys: [median],
  setup: () => ({
    hooks: {
      callApi: async (request, { endpoint }, { next }) => {
        const configured = median.of(endpoint);
        if (configured === undefined) return undefined;
        const { urls, member } = configured;
        const calls = urls.map(async (url) => {
          const { data } = await next({ ...request, url: url + new URL(request.url).search });
          const value: unknown = member === undefined ? data : Object(data)[member];
          return typeof value === 'number' ? value : Promise.reject({ reason: 'no number' });
        });
        const results = await Promise.allSettled(calls);
        const numbers = results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
        if (numbers.length * 2 > urls.length) return { status: 200, data: { median: middleOf(numbers) } };
        const reasons = results.flatMap((result) => (result.status === 'rejected' ? result.reason.reason : []));
        throw new Refusal(502, 'API call failed', { reason: reasons.join('; ') });
      },
    },
  }),
});
