import type { Definition, EndpointKeys } from '../define.ts';
import { checkDefinition, isDefinition, simpleKeys, simplePlugin } from '../host/check-definition.ts';
import { hooksWithKeys, keyValues } from '../host/endpoint-keys.ts';
import type { Endpoint } from '../kernel.ts';
import { validateOwn } from '../schema/own-config.ts';

/** What the service would make of a plugin file. @throws PluginProblem as its loader does */
export function definitionOf(
  plugin: unknown,
  exported: EndpointKeys | undefined,
  endpointOf: (requestId: unknown) => Endpoint | undefined,
): Definition {
  if (isDefinition(plugin)) {
    checkDefinition(plugin, 'the plugin');
    return plugin;
  }
  const { name, hooks, credentials } = simplePlugin(plugin, 'the plugin');
  const keys = simpleKeys(exported);
  const values = ({ requestId }: { readonly requestId?: unknown }) => keyValues(keys, endpointOf(requestId));
  const setup = () => ({ hooks: hooksWithKeys(hooks, keys, values) });
  return { name, keys, ...(credentials && { credentials }), setup };
}

/** The config as the service hands it to `setup`: validated, with defaults. @throws Error with a line for each mistake */
export async function configOf({ configSchema }: Definition, given: unknown): Promise<unknown> {
  if (configSchema === undefined) {
    if (given !== undefined) throw new Error('config: the plugin takes no config');
    return undefined;
  }
  const { value, findings } = await validateOwn(configSchema, {
    value: given,
    path: 'config',
    leaf: (text) => text,
    redact: (error) => (error instanceof Error ? error.message : String(error)),
    doubtful: false,
  });
  if (findings.length > 0) throw new Error(findings.map(({ path, message }) => `${path}: ${message}`).join('\n'));
  return value;
}
