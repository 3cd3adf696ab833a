/**
 * A sentence on what this plugin serves: the endpoints of an API, with their IDs.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./my-plugin.ts
 * ```
 */
import { definePlugin, Refusal } from 'signed-data-proxy/plugins-sdk';

export default definePlugin({
  name: 'my-plugin',
  setup({ endpoints }) {
    return {
      routes: [
        {
          method: 'GET',
          path: '/my-plugin/:api',
          // Rate limits apply to the route.
          admit: true,
          handle({ params }) {
            const found = endpoints.filter(({ api }) => api === params.api);
            if (found.length === 0) throw new Refusal(404, 'API not found');
            return { status: 200, body: JSON.stringify(found.map(({ name, id }) => ({ name, id }))) };
          },
        },
      ],
    };
  },
});
