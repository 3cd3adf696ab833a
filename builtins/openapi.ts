import { configKey, definePlugin, JsonText, publicEndpoint, Type } from '../plugins-sdk/index.ts';
import { openApiDocument } from '../plugins-sdk/openapi.ts';

const openapiKey = configKey(
  'settings',
  'openapi',
  Type.Optional(Type.Boolean({ description: 'Describes the endpoints at GET /openapi.json; default false' })),
);
/** Read only. */
const versionKey = configKey('root', 'version', Type.String());

/** `GET /openapi.json`: what clients may know of the endpoints, in OpenAPI 3.1. Off unless the config asks for it. */
export const openapi = definePlugin({
  name: 'openapi',
  budget: 'none',
  keys: [openapiKey],
  setup({ config, endpoints }) {
    if (openapiKey.in(config) !== true) return {};
    const version = versionKey.in(config) ?? '';
    const body = JsonText.stringify(openApiDocument({ version, endpoints: endpoints.map(publicEndpoint) }));
    return { routes: [{ method: 'GET', path: '/openapi.json', admit: true, handle: () => ({ status: 200, body }) }] };
  },
});
