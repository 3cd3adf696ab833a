import { hint } from '../../lib/suggest.ts';
import {
  type CheckContext,
  closedObject,
  error,
  type Finding,
  optionalKey,
  warning,
} from '../../plugins-sdk/config.ts';
import { type Endpoint, type Static, Type } from '../../plugins-sdk/index.ts';
import { nameOf } from '../../plugins-sdk/openapi.ts';
import { detailsOf } from '../shared/discovery.ts';

function names(description: string) {
  return Type.Optional(Type.Array(Type.String(), { minItems: 1, description }));
}

const Settings = closedObject({
  path: Type.Optional(
    Type.String({ pattern: '^(/[A-Za-z0-9._~-]+)+$', description: 'Where clients reach it; default /mcp' }),
  ),
  include: names('Endpoints that are tools, as api/endpoint; default all'),
  exclude: names('Endpoints that are not tools; default none'),
  instructions: Type.Optional(
    Type.String({ minLength: 1, maxLength: 5000, description: 'What models should know of the tools' }),
  ),
  hosts: Type.Optional(
    Type.Array(
      Type.String({
        pattern: '^([A-Za-z0-9.-]+|\\[[0-9A-Fa-f:.]+\\])$',
        description: 'Host name alone, without https:// and port',
      }),
      {
        minItems: 1,
        description: 'Its host names, besides loopback and those of settings.openapi.servers',
      },
    ),
  ),
});
/** The settings of the built-in, with defaults. */
export interface McpSettings extends Static<typeof Settings> {
  readonly path: string;
}

/** The config key of the built-in. */
export const mcpKey = optionalKey(
  'settings',
  'mcp',
  Type.Union([Type.Boolean(), Settings], {
    description: 'Serves the endpoints to agents as tools (Model Context Protocol); default false',
  }),
);

type Config = Readonly<Record<string, unknown>>;

/** Returns the settings; undefined where the built-in is off. */
export function settingsIn(config: Config): McpSettings | undefined {
  const chosen = mcpKey.in(config) ?? false;
  return chosen === false ? undefined : { path: '/mcp', ...(chosen !== true && chosen) };
}

/** Returns the host names that clients may use. Other names are refused, against DNS rebinding by pages of other sites. */
export function allowedHosts(config: Config, { hosts = [] }: McpSettings): readonly string[] {
  const own = hosts.map((host) => new URL(`http://${host}`).hostname);
  const servers = detailsOf(config).servers.flatMap((url) => (URL.canParse(url) ? new URL(url).hostname : []));
  return ['localhost', '127.0.0.1', '[::1]', ...own, ...servers];
}

/** The name of the tool that verifies answers. */
export const VERIFY_TOOL = 'verify_answer';
/** The most characters of a tool's name in the protocol. */
const LONGEST_NAME = 128;

/** The most characters of a tool's name that common clients accept. */
const COMMON_NAME = 64;
const TOO_LONG = `models that take at most ${COMMON_NAME} characters refuse it: shorten the name, or settings.mcp.exclude it`;

const TAKEN = 'is where endpoints are asked, so that no message would come: choose another path';

type Named = Pick<Endpoint, 'api' | 'name'>;

/** Returns an endpoint's label, `api/endpoint`. */
export function labelOf({ api, name }: Named): string {
  return `${api}/${name}`;
}

/** Returns the name of an endpoint's tool. */
export function toolName({ api, name }: Named): string {
  return `${nameOf(api)}_${nameOf(name)}`;
}

/** Returns the endpoints that are tools. */
export function chosenOf<E extends Named>(endpoints: readonly E[], { include, exclude = [] }: McpSettings): E[] {
  return endpoints.filter((endpoint) => {
    const label = labelOf(endpoint);
    return (include?.includes(label) ?? true) && !exclude.includes(label);
  });
}

/** Finds faults beyond the schema: in the path, in hosts, in the names of endpoints, and tools with the same name. */
export function checkMcp({ config, endpoints }: Pick<CheckContext, 'config' | 'endpoints'>): Finding[] {
  const settings = settingsIn(config);
  if (settings === undefined) return [];
  const { path, hosts = [] } = settings;
  const taken = /^\/endpoints\/[^/]+$/.test(path) ? [error('settings.mcp.path', TAKEN)] : [];
  const odd = hosts.flatMap((host, index) =>
    URL.canParse(`http://${host}`) ? [] : [error(`settings.mcp.hosts[${index}]`, `${host} is no host name or address`)],
  );
  const labels = endpoints.map(labelOf);
  const unknown = (['include', 'exclude'] as const).flatMap((list) =>
    (settings[list] ?? []).flatMap((label, index) =>
      labels.includes(label)
        ? []
        : [error(`settings.mcp.${list}[${index}]`, `no endpoint is ${label}${hint(label, labels, 'endpoints')}`)],
    ),
  );
  const owners = new Map([[VERIFY_TOOL, 'the tool that verifies answers']]);
  const clashes = chosenOf(endpoints, settings).flatMap((endpoint): Finding[] => {
    const name = toolName(endpoint);
    const at = `${endpoint.path}.name`;
    if (name.length > LONGEST_NAME) return [error(at, `gives a tool name of more than ${LONGEST_NAME} characters`)];
    const long = name.length > COMMON_NAME ? [warning(at, `gives the tool name ${name}: ${TOO_LONG}`)] : [];
    const owner = owners.get(name);
    if (owner !== undefined)
      return [error(at, `the tool ${name} would be that of ${owner}, too: rename it, or settings.mcp.exclude one`)];
    owners.set(name, labelOf(endpoint));
    return long;
  });
  return [...taken, ...odd, ...unknown, ...clashes];
}
