import { definePlugin } from '../plugins-sdk/index.ts';

/** Looks an endpoint up by its ID; hex is case-insensitive. */
export const endpoints = definePlugin({
  name: 'endpoints',
  budget: 'none',
  setup({ endpoints }) {
    const byId = new Map(endpoints.map((endpoint) => [endpoint.id.toLowerCase(), endpoint]));
    return { hooks: { resolve: (id) => byId.get(id) ?? byId.get(id.toLowerCase()) } };
  },
});
