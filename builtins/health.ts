import { definePlugin } from '../plugins-sdk/index.ts';

/** `GET /health`: the service is up, and this is its signer. */
export const health = definePlugin({
  name: 'health',
  budget: 'none',
  setup({ node }) {
    const body = JSON.stringify({ status: 'ok', node });
    return { routes: [{ method: 'GET', path: '/health', admit: false, handle: () => ({ status: 200, body }) }] };
  },
});
