import { configKey, definePlugin, JsonText, Type } from '../plugins-sdk/index.ts';

const openapiKey = configKey(
  'settings',
  'openapi',
  Type.Optional(Type.Boolean({ description: 'Describes the endpoints at GET /openapi.json; default false' })),
);

/** `GET /openapi.json`: what clients may know of the endpoints, in OpenAPI 3.1. Off unless the config asks for it. */
export const openapi = definePlugin({
  name: 'openapi',
  budget: 'none',
  keys: [openapiKey],
  setup({ config, describe }) {
    if (openapiKey.in(config) !== true) return {};
    const body = JsonText.stringify(describe().document);
    return { routes: [{ method: 'GET', path: '/openapi.json', admit: true, handle: () => ({ status: 200, body }) }] };
  },
});
