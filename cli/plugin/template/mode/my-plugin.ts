/**
 * A sentence on how this plugin delivers answers: each with the time at which it was served beside it.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./my-plugin.ts
 * apis:
 *   - endpoints:
 *       - mode: my-plugin
 * ```
 */
import { definePlugin } from 'signed-data-proxy/plugins-sdk';

export default definePlugin({
  name: 'my-plugin',
  modes: ['my-plugin'],
  setup({ now }) {
    return {
      hooks: {
        present: {
          'my-plugin': async (run) => {
            // All that happens between the parameters and the signed answer; what it throws is the client's answer.
            const answer = await run();
            return { status: 200, body: answer.with({ servedAt: new Date(now()).toISOString() }) };
          },
        },
      },
    };
  },
});
