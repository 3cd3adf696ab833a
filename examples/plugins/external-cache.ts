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
  setup({ node, config, log }, { url, timeout = 250 }) {
    const client = createHttpClient();
    const maxBytes = 4 * 1024 * 1024;
    // Another signer or another config is another answer.
    const version = JSON.stringify([node, config]);
    const find = async (place: string): Promise<SignedResponse | undefined> => {
      const { status, body } = await client.request({ method: 'GET', url: place, timeout, maxBytes });
      if (status !== 200 && status !== 404) throw new Error(`the store answered ${status}`);
      return status === 200 ? SignedResponse.parse(body.toString()) : undefined;
    };
    const store = async (place: string, { json }: SignedResponse, maxAge: number): Promise<void> => {
      const headers = { 'Cache-Control': `max-age=${maxAge}` };
      const { status } = await client.request({ method: 'PUT', url: place, headers, body: json, timeout, maxBytes });
      if (status >= 300) throw new Error(`the store answered ${status}`);
    };
    const complain = (error: unknown) => log.warn('the store failed', { error: String(error) });
    return {
      stop: () => client.close(),
      hooks: {
        answer: async (question, exchange, { next }) => {
          const maxAge = keep.of(exchange.endpoint);
          if (maxAge === undefined) return undefined;
          const key = toHex(keccak256(new TextEncoder().encode(version + question.key)));
          const place = `${url}/${key.slice(2)}`;
          const known = await find(place).catch(complain);
          if (known) return known;
          const answer = await next();
          // A client that left may have ended the work on the answer: it may lack a proof.
          if (!exchange.abandoned) await store(place, answer, maxAge).catch(complain);
          return answer;
        },
      },
    };
  },
});
