import type { Services } from '../../plugins-sdk/index.ts';
import { nameOf } from '../../plugins-sdk/openapi.ts';
import { type McpSettings, serversIn } from './settings.ts';

const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json';
/** Characters of a title or a description that registries take. */
const LONGEST_TITLE = 100;

/** The `server.json` by which registries of MCP servers list the service; nothing where no public URL is configured. */
export function registryEntry({ config, describe }: Services, { path }: McpSettings): object | undefined {
  const servers = serversIn(config);
  const [first] = servers;
  if (first === undefined) return undefined;
  const { title, version } = Object(describe().document.info);
  const owner = first.hostname.split('.').reverse().join('.');
  return {
    $schema: SCHEMA,
    name: `${owner}/${nameOf(title) || 'signed-data-proxy'}`,
    title: title.slice(0, LONGEST_TITLE),
    description: `${title.slice(0, LONGEST_TITLE - 50)}: each tool's answer is signed by its operator`,
    version,
    remotes: servers.map(({ href }) => ({ type: 'streamable-http', url: href.replace(/\/*$/, path) })),
  };
}
