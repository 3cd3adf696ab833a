import { closedObject, optionalKey } from '../../plugins-sdk/config.ts';
import { type Endpoint, Type } from '../../plugins-sdk/index.ts';

/** The config key for whether the service is announced to crawlers and agents. */
export const discoveryKey = optionalKey(
  'settings',
  'discovery',
  Type.Boolean({
    description:
      'Tells catalogues what is sold, at /.well-known/x402, /llms.txt and in x402; true: lists all endpoints at /llms.txt; default what is sold',
  }),
);

/** Pattern for a catalogue's words: printable ASCII, of the length that catalogues accept. */
export const CATALOGUE_TEXT = '^[\\x20-\\x7e]{1,32}$';

/** The config key for an API's words in catalogues. */
export const tagsKey = optionalKey(
  'api',
  'tags',
  Type.Array(Type.String({ pattern: CATALOGUE_TEXT }), {
    maxItems: 5,
    uniqueItems: true,
    description: 'Words for catalogues, at most 32 characters of ASCII each',
  }),
);

const Details = closedObject({
  title: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: 'Name of the service' })),
  description: Type.Optional(
    Type.String({ minLength: 1, maxLength: 5000, description: 'About the service, in CommonMark' }),
  ),
  version: Type.Optional(
    Type.String({ minLength: 1, maxLength: 100, description: "Version of your API; default the program's" }),
  ),
  servers: Type.Optional(
    Type.Array(Type.String({ pattern: '^https?://[^?#\\s]+$', description: 'URL with https:// in front' }), {
      minItems: 1,
      description: 'URLs at which clients reach it; default where the document is',
    }),
  ),
});
/** The config key for the OpenAPI document. */
export const openapiKey = optionalKey(
  'settings',
  'openapi',
  Type.Union([Type.Boolean(), Details], { description: 'Serves GET /openapi.json; default false' }),
);

/** Returns the operator's details of the service, for the OpenAPI document. */
export function detailsOf(config: Readonly<Record<string, unknown>>) {
  const chosen = openapiKey.in(config);
  const { servers = [], ...info } = typeof chosen === 'object' ? chosen : {};
  return { info, servers: servers.map((url) => url.replace(/\/+$/, '')) };
}

/** Returns the service's public URL, from an `auth` of the endpoint or the OpenAPI settings; `''` if neither has one. */
export function publicUrlOf({ auth }: Pick<Endpoint, 'auth'>, config: Readonly<Record<string, unknown>>): string {
  const stated = auth.flatMap(({ publicUrl }) => (typeof publicUrl === 'string' ? publicUrl.replace(/\/+$/, '') : []));
  return [...stated, ...detailsOf(config).servers][0] ?? '';
}

/** Returns whether an endpoint is sold by a protocol that catalogues know. */
export function isSold({ auth }: Pick<Endpoint, 'auth'>): boolean {
  return auth.some(({ type }) => type === 'x402-exact');
}
