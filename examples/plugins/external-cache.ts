/**
 * Keeps signed answers in a store that several instances share: `GET` and `PUT` of `<url>/<key>`, the latter with the header
 * `Cache-Control: max-age=<seconds>`. A store that fails costs no answer, only the upstream call that it would have saved; one
 * that hangs also costs the time of `timeout`, once for the look-up and once for keeping the answer.
 *
 * Who can write to the store can have clients sent what was signed before, and nothing else: they check signatures.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./external-cache.ts
 *       config:
 *         url: http://store.internal/answers
 * apis:
 *   - keep: 60 # seconds; endpoints may have a value of their own
 * ```
 */
import {
  answerKey,
  ContextKey,
  configKey,
  createHttpClient,
  definePlugin,
  keccak256,
  millisecondsSchema,
  SignedResponse,
  Type,
  toHex,
} from 'signed-data-proxy/plugins-sdk';

const keep = configKey(
  'shared',
  'keep',
  Type.Optional(Type.Integer({ minimum: 1, description: 'Seconds that answers are kept in the store' })),
);

export const configSchema = Type.Object(
  {
    url: Type.String({ pattern: '^https?://', description: 'Where answers are kept' }),
    timeout: Type.Optional(millisecondsSchema('Milliseconds for a call of the store; default 250')),
  },
  { additionalProperties: false },
);

export default definePlugin({
  name: 'external-cache',
  configSchema,
  keys: [keep],
  setup({ node, config }, { url, timeout = 250 }) {
    const client = createHttpClient();
    const maxBytes = 4 * 1024 * 1024;
    // Another signer or another config is another answer.
    const version = JSON.stringify([node, config]);
    const place = new ContextKey<string>('place in the store');
    return {
      stop: () => client.close(),
      hooks: {
        lookup: async (_, exchange) => {
          if (keep.of(exchange.endpoint) === undefined) return undefined;
          const key = toHex(keccak256(new TextEncoder().encode(version + answerKey(exchange))));
          const target = `${url}/${key.slice(2)}`;
          place.set(exchange, target);
          const request = { method: 'GET', url: target, timeout, maxBytes, signal: exchange.client };
          const { status, body } = await client.request(request);
          if (status === 404) return undefined;
          if (status !== 200) throw new Error(`the store answered ${status}`);
          return SignedResponse.parse(body.toString());
        },
        // Called for answers that were made just now.
        store: async ({ json }, exchange) => {
          const target = place.get(exchange);
          // A client that left may have ended the work on the answer: it may lack a proof.
          if (target === undefined || exchange.abandoned) return;
          const headers = { 'Cache-Control': `max-age=${keep.of(exchange.endpoint)}` };
          const { status } = await client.request({
            method: 'PUT',
            url: target,
            headers,
            body: json,
            timeout,
            maxBytes,
          });
          if (status >= 300) throw new Error(`the store answered ${status}`);
        },
      },
    };
  },
});
