import { answerHeaders, definePlugin } from '../plugins-sdk/index.ts';
import { refTo } from '../plugins-sdk/openapi.ts';

const none = Object.freeze({});

/** The signed answer in the response itself. */
export const modeSync = definePlugin({
  name: 'mode-sync',
  required: true,
  modes: ['sync'],
  openapi: () => ({
    modes: {
      sync: {
        title: 'the answer comes at once',
        responses: (kind, text) => ({
          200: { description: `The answer: ${text}`, schema: refTo('schemas', `${kind}Answer`) },
        }),
      },
    },
  }),
  setup: () => ({
    hooks: {
      present: {
        sync: (run, exchange) =>
          run().then((body) => ({ status: 200, headers: answerHeaders.get(exchange) ?? none, body })),
      },
    },
  }),
});
