/**
 * Adds the mode `jsonp`: the answer is a script that calls a function, which the client names in the parameter `callback`.
 * Errors stay plain HTTP.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./mode-jsonp.ts
 * apis:
 *   - endpoints:
 *       - name: eth-usd
 *         mode: jsonp
 * ```
 */
import { definePlugin, Refusal } from 'signed-data-proxy/plugins-sdk';

const headers = { 'Content-Type': 'text/javascript; charset=utf-8', 'X-Content-Type-Options': 'nosniff' };
/** The name of a function, or the path of one in objects (`a.b.c`). */
const CALLBACK = /^(?=.{1,100}$)[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*$/;

export default definePlugin({
  name: 'mode-jsonp',
  budget: 'none',
  modes: ['jsonp'],
  openapi: () => ({
    modes: {
      jsonp: {
        title: 'the answer comes as a script',
        responses: (_, text) => ({
          200: { description: `A call of \`callback\` with the answer: ${text}`, mediaType: 'text/javascript' },
        }),
      },
    },
  }),
  setup: () => ({
    hooks: {
      present: {
        jsonp: async (run, exchange) => {
          const { callback } = exchange.parameters;
          if (typeof callback !== 'string' || !CALLBACK.test(callback)) throw new Refusal(400, 'Invalid callback');
          const { json } = await run();
          // The comment in front keeps a text of the client's choice from being the first bytes of a file.
          return { status: 200, headers, body: `/**/${callback}(${json});\n` };
        },
      },
    },
  }),
});
