import { hint } from '../../lib/suggest.ts';
import {
  type CheckContext,
  closedObject,
  type EndpointDraft,
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
export function* checkMcp({ config, endpoints }: Pick<CheckContext, 'config' | 'endpoints'>): Iterable<Finding> {
  const settings = settingsIn(config);
  if (settings === undefined) return;
  if (/^\/endpoints\/[^/]+$/.test(settings.path)) yield error('settings.mcp.path', TAKEN);
  for (const [index, host] of (settings.hosts ?? []).entries())
    if (!URL.canParse(`http://${host}`))
      yield error(`settings.mcp.hosts[${index}]`, `${host} is no host name or address`);
  const labels = endpoints.map(labelOf);
  for (const list of ['include', 'exclude'] as const)
    for (const [index, label] of (settings[list] ?? []).entries())
      if (!labels.includes(label))
        yield error(`settings.mcp.${list}[${index}]`, `no endpoint is ${label}${hint(label, labels, 'endpoints')}`);
  yield* checkNames(chosenOf(endpoints, settings));
}

/** Finds names that are too long for a tool, or taken by another one. */
function* checkNames(endpoints: readonly EndpointDraft[]): Iterable<Finding> {
  const owners = new Map([[VERIFY_TOOL, 'the tool that verifies answers']]);
  for (const endpoint of endpoints) {
    const name = toolName(endpoint);
    const at = `${endpoint.path}.name`;
    const owner = owners.get(name);
    if (name.length > LONGEST_NAME) yield error(at, `gives a tool name of more than ${LONGEST_NAME} characters`);
    else if (owner !== undefined)
      yield error(at, `the tool ${name} would be that of ${owner}, too: rename it, or settings.mcp.exclude one`);
    else if (name.length > COMMON_NAME) yield warning(at, `gives the tool name ${name}: ${TOO_LONG}`);
    owners.set(name, owner ?? labelOf(endpoint));
  }
}
