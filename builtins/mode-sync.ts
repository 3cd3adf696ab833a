import { answerHeaders, definePlugin } from '../plugins-sdk/index.ts';

const none = Object.freeze({});

/** The signed answer in the response itself. */
export const modeSync = definePlugin({
  name: 'mode-sync',
  budget: 'none',
  required: true,
  modes: ['sync'],
  setup: () => ({
    hooks: {
      deliver: {
        sync: (run, exchange) =>
          run().then((body) => ({ status: 200, headers: answerHeaders.get(exchange) ?? none, body })),
      },
    },
  }),
});
