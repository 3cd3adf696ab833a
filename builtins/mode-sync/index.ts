import { answerHeaders, definePlugin } from '../../plugins-sdk/index.ts';
import { mode } from './openapi.ts';

const none = Object.freeze({});

/** The signed answer in the response itself. */
export const modeSync = definePlugin({
  name: 'mode-sync',
  required: true,
  modes: ['sync'],
  openapi: () => ({ modes: { sync: mode } }),
  setup: () => ({
    hooks: {
      present: {
        sync: (run, exchange) =>
          run().then((body) => ({ status: 200, headers: answerHeaders.get(exchange) ?? none, body })),
      },
    },
  }),
});
