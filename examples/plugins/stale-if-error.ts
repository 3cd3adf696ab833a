/**
 * Gives out the last good answer when there is no new one (502 or 503), for a while: signed as it was, with the timestamp that
 * it had, and `Cache-Status: stale-if-error; hit`. Clients that need fresh answers look at the timestamp. Where the upstream
 * refuses what is asked (a 4xx but 429), nothing is given out.
 *
 * Kept are the answers to 1,000 questions, of at most 65,536 characters each. List it before plugins that keep answers, which
 * would keep an old one as new.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./stale-if-error.ts
 * apis:
 *   - staleIfError: 10m # endpoints may have a value of their own
 * ```
 */
import {
  addAnswerHeaders,
  BoundedTtlMap,
  configKey,
  definePlugin,
  isRefusal,
  millisecondsSchema,
  type SignedResponse,
  Type,
} from 'signed-data-proxy/plugins-sdk';

const time = millisecondsSchema('Milliseconds for which an answer stands in for those that fail; default none');
const staleIfError = configKey('shared', 'staleIfError', Type.Optional(time));

/** A 4xx says something about the question, and no older answer is a better one; a 429 does not. */
const isOutage = (error: unknown) =>
  isRefusal(error) && [502, 503].includes(error.status) && !/^4(?!29)/.test(`${error.upstreamStatus}`);

export default definePlugin({
  name: 'stale-if-error',
  keys: [staleIfError],
  setup({ now }) {
    const kept = new BoundedTtlMap<SignedResponse>(1000);
    return {
      hooks: {
        answer: async ({ key }, exchange, { next }) => {
          const keptFor = staleIfError.of(exchange.endpoint);
          if (keptFor === undefined) return undefined;
          try {
            const answer = await next();
            // A client that left may have ended the work on the answer: it may lack a proof.
            if (!exchange.abandoned && answer.json.length <= 65_536) kept.set(key, answer, now() + keptFor, now());
            return answer;
          } catch (error) {
            const answer = isOutage(error) ? kept.get(key, now()) : undefined;
            if (answer === undefined) throw error;
            addAnswerHeaders(exchange, { 'Cache-Status': 'stale-if-error; hit' });
            return answer;
          }
        },
      },
    };
  },
});
