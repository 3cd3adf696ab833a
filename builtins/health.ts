import { definePlugin, probes } from '../plugins-sdk/index.ts';

/**
 * `GET /health`: the service is up, and this is its signer. `GET /ready`: whether it takes requests, 503 where it does not,
 * for whoever sends it traffic.
 */
export const health = definePlugin({
  name: 'health',
  budget: 'none',
  setup: ({ node, phase }) => ({
    routes: Object.entries(probes(node, phase)).map(([path, handle]) => ({
      method: 'GET',
      path,
      admit: false,
      handle,
    })),
  }),
});
