import { definePlugin } from '../plugins-sdk/index.ts';
import { unknownEndpointId } from '../plugins-sdk/observe.ts';

const ID = /^0x[0-9a-f]{64}$/;

/** Looks an endpoint up by its ID; hex is case-insensitive. */
export const endpoints = definePlugin({
  name: 'endpoints',
  setup({ endpoints }) {
    const byId = new Map(endpoints.map((endpoint) => [endpoint.id.toLowerCase(), endpoint]));
    return {
      hooks: {
        resolve: (id, exchange) => {
          const asked = byId.has(id) ? id : id.toLowerCase();
          const found = byId.get(asked);
          // A text that is no ID is not logged: it could be a secret that a client sent by mistake.
          if (found === undefined && ID.test(asked)) unknownEndpointId.set(exchange, asked);
          return found;
        },
      },
    };
  },
});
