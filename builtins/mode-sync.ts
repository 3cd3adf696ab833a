import { definePlugin } from '../plugins-sdk/index.ts';

/** The signed answer in the response itself. */
export const modeSync = definePlugin({
  name: 'mode-sync',
  budget: 'none',
  required: true,
  modes: ['sync'],
  setup: () => ({ hooks: { deliver: { sync: (run) => run().then((body) => ({ status: 200, body })) } } }),
});
