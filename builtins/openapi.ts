import { configKey, definePlugin, JsonText, type Static, Type } from '../plugins-sdk/index.ts';
import type { OpenApiPart } from '../plugins-sdk/openapi/part.ts';

const Details = Type.Object(
  {
    title: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: 'What the service is called' })),
    description: Type.Optional(
      Type.String({ minLength: 1, maxLength: 5000, description: 'What clients should know of it; CommonMark' }),
    ),
    version: Type.Optional(
      Type.String({ minLength: 1, maxLength: 100, description: "Version of your API; default the program's" }),
    ),
    servers: Type.Optional(
      Type.Array(Type.String({ pattern: '^https?://[^?#\\s]+$' }), {
        minItems: 1,
        description: 'URLs at which clients reach it; default where the document is',
      }),
    ),
  },
  { additionalProperties: false },
);
const openapiKey = configKey(
  'settings',
  'openapi',
  Type.Optional(
    Type.Union([Type.Boolean(), Details], {
      description: 'Describes the endpoints at GET /openapi.json, perhaps in words of yours; default false',
    }),
  ),
);

function partOf(details: Static<typeof Details>): OpenApiPart {
  const { servers, ...info } = details;
  return { info, ...(servers && { servers: servers.map((url) => ({ url: url.replace(/\/+$/, '') })) }) };
}

/** `GET /openapi.json`: what clients may know of the endpoints, in OpenAPI 3.1. Off unless the config asks for it. */
export const openapi = definePlugin({
  name: 'openapi',
  budget: 'none',
  keys: [openapiKey],
  openapi: ({ config }) => {
    const chosen = openapiKey.in(config);
    return typeof chosen === 'object' ? partOf(chosen) : {};
  },
  setup({ config, describe }) {
    const chosen = openapiKey.in(config) ?? false;
    if (chosen === false) return {};
    const body = JsonText.stringify(describe().document);
    return { routes: [{ method: 'GET', path: '/openapi.json', admit: true, handle: () => ({ status: 200, body }) }] };
  },
});
