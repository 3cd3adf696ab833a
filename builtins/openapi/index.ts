import { error } from '../../plugins-sdk/config.ts';
import { definePlugin, JsonText } from '../../plugins-sdk/index.ts';
import { detailsOf, openapiKey } from '../shared/discovery.ts';

/** Serves `GET /openapi.json`, an OpenAPI 3.1 document of the endpoints for clients. Off unless the config asks for it. */
export const openapi = definePlugin({
  name: 'openapi',
  keys: [openapiKey],
  check: ({ config }) =>
    detailsOf(config).servers.flatMap((url, index) =>
      URL.canParse(url) ? [] : [error(`settings.openapi.servers[${index}]`, 'is no valid URL')],
    ),
  openapi: ({ config }) => {
    const { info, servers } = detailsOf(config);
    return { info, servers: servers.map((url) => ({ url })) };
  },
  setup({ config, describe }) {
    if (!openapiKey.in(config)) return {};
    const body = JsonText.stringify(describe().document);
    return { routes: [{ method: 'GET', path: '/openapi.json', admit: true, handle: () => ({ status: 200, body }) }] };
  },
});
