import { definePlugin } from '../plugins-sdk/index.ts';

/**
 * `GET /health`: the service is up, and this is its signer. `GET /ready`: whether it takes requests, 503 where it does not,
 * for whoever sends it traffic.
 */
export const health = definePlugin({
  name: 'health',
  budget: 'none',
  setup({ node, phase }) {
    const body = JSON.stringify({ status: 'ok', node });
    const readiness = () => {
      const ready = phase() === 'serving';
      return { status: ready ? 200 : 503, body: JSON.stringify({ status: ready ? 'ready' : phase() }) };
    };
    return {
      routes: [
        { method: 'GET', path: '/health', admit: false, handle: () => ({ status: 200, body }) },
        { method: 'GET', path: '/ready', admit: false, handle: readiness },
      ],
    };
  },
});
