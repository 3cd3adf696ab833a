/**
 * A sentence on which answers this plugin gives again: each for a few seconds, and made once for all who ask at the same time.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./my-plugin.ts
 *       config:
 *         seconds: 5
 * ```
 */

import { definePlugin, type SignedResponse, Type } from 'signed-data-proxy/plugins-sdk';
import { BoundedTtlMap } from 'signed-data-proxy/plugins-sdk/state';

const MOST_ANSWERS = 10_000;

export default definePlugin({
  name: 'my-plugin',
  configSchema: Type.Object(
    { seconds: Type.Integer({ minimum: 1, default: 5, description: 'For how long an answer is given again' }) },
    { additionalProperties: false },
  ),
  setup({ now }, { seconds }) {
    const answers = new BoundedTtlMap<SignedResponse>(MOST_ANSWERS);
    return {
      hooks: {
        /** The key of a question tells its answer from all others of this config. */
        answer({ key }, _exchange, { share }) {
          const known = answers.get(key, now());
          if (known !== undefined) return known;
          // For all who ask meanwhile; it goes on as long as one of them waits.
          return share(key, async ({ exchange, next }) => {
            const answer = await next();
            // When all have left, it may lack its proof.
            if (!exchange.abandoned) answers.set(key, answer, now() + seconds * 1000, now());
            return answer;
          });
        },
      },
    };
  },
});
