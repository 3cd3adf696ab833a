/**
 * Keeps signed answers in a store that several instances share, by `GET` and `PUT` of `<url>/<key>`. A `PUT` has the header
 * `Cache-Control: max-age=<seconds>`. Requests for the same answer at the same time share one look-up and one upstream call.
 *
 * If the store fails, clients still get answers, by an upstream call that the store would have saved. If it hangs, a request also
 * waits for `timeout`, once for the look-up and once for keeping the answer. A stored text counts only if it is this service's
 * answer to the same question, and not of the future (another instance's clock may be ahead).
 *
 * Somebody who can write to the store can make clients get older signed answers, but no others: signatures are checked.
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
import { configKey, createHttpClient, definePlugin, SignedResponse, Type, toHex } from 'signed-data-proxy/plugins-sdk';
import { millisecondsSchema } from 'signed-data-proxy/plugins-sdk/config';
import { keccak256 } from 'signed-data-proxy/plugins-sdk/signing';
import { requireAnswer, type Wanted } from 'signed-data-proxy/plugins-sdk/state';

const keep = configKey(
  'apiOrEndpoint',
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
  // Its own `timeout` bounds it.
  budget: 'none',
  configSchema,
  keys: [keep],
  setup({ node, config, log, now }, { url, timeout = 250 }) {
    const client = createHttpClient();
    const bounds = { timeout, maxBytes: 4 * 1024 * 1024 };
    // Another signer or config gives other answers, so both are part of the key.
    const version = JSON.stringify([node, config]);
    const find = async (place: string, wanted: Wanted): Promise<SignedResponse | undefined> => {
      const { status, body } = await client.request({ method: 'GET', url: place, ...bounds });
      if (status === 404) return undefined;
      if (status !== 200) throw new Error(`the store answered ${status}`);
      const answer = SignedResponse.parse(body.toString());
      requireAnswer(answer, wanted, { signers: [node], now });
      return answer;
    };
    const store = async (place: string, body: string, maxAge: number): Promise<void> => {
      const headers = { 'Cache-Control': `max-age=${maxAge}` };
      const { status } = await client.request({ method: 'PUT', url: place, headers, body, ...bounds });
      if (status >= 300) throw new Error(`the store answered ${status}`);
    };
    const complain = (what: string) => (error: unknown) => log.warn(`${what} failed`, { error: String(error) });
    return {
      stop: () => client.close(),
      hooks: {
        answer: (question, { endpoint }, { share }) => {
          const maxAge = keep.of(endpoint);
          if (maxAge === undefined) return undefined;
          const name = toHex(keccak256(new TextEncoder().encode(version + question.key))).slice(2);
          const place = `${url}/${name}`;
          return share(question.key, async ({ exchange, next }) => {
            const wanted = { endpointId: endpoint.id, question };
            const known = await find(place, wanted).catch(complain('the look-up'));
            if (known) return known;
            const answer = await next();
            // If all clients have left, the work was cut short, and the answer may lack a proof.
            if (!exchange.abandoned) await store(place, answer.json, maxAge).catch(complain('keeping an answer'));
            return answer;
          });
        },
      },
    };
  },
});
