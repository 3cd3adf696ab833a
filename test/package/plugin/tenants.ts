/** A full plugin that touches what would not work with a second copy of the SDK: context keys, its own and the SDK's, and refusals. */
import { ContextKey, clientName, definePlugin, Refusal, Type } from 'signed-data-proxy-plugins-sdk';

const tenant = new ContextKey<string>('tenant', { once: true });

export default definePlugin({
  name: 'tenants',
  budget: 'none',
  auth: { tenant: Type.Object({}, { additionalProperties: false }) },
  setup: () => ({
    hooks: {
      authenticate: {
        tenant: (_, exchange) => {
          const name = exchange.headers['x-tenant'];
          if (name === undefined) throw new Refusal(401, 'Which tenant?', { headers: { 'X-Tenants': 'ada' } });
          tenant.set(exchange, name);
          clientName.set(exchange, name);
          return true;
        },
      },
      respond: (headers, exchange) => {
        const name = tenant.get(exchange);
        return name === undefined ? undefined : { ...headers, 'X-Tenant': name };
      },
    },
  }),
});
