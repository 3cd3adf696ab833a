import { checkDefinition } from '../../config/plugins/check-definition.ts';
import { missingCounterparts } from '../../config/plugins/counterparts.ts';
import { hooksWithKeys, simpleKeys } from '../../config/plugins/endpoint-keys.ts';
import { isDefinition, simplePlugin } from '../../config/plugins/simple-plugin.ts';
import type { PluginSet } from '../../kernel/registry.ts';
import { errorText } from '../../lib/text.ts';
import type { Definition, EndpointKeys } from '../../plugins-sdk/define.ts';
import { validateOwn } from '../../plugins-sdk/schema/own-config.ts';
import type { Services } from '../../plugins-sdk/services.ts';

/** Returns the definition that the service makes of a plugin. @throws PluginProblem as the loader does */
export function definitionOf(plugin: unknown, exported: EndpointKeys | undefined): Definition {
  if (isDefinition(plugin)) {
    checkDefinition(plugin, 'the plugin');
    return plugin;
  }
  const { name, hooks, credentials } = simplePlugin(plugin, 'the plugin');
  const keys = simpleKeys(exported);
  const setup = () => ({ hooks: hooksWithKeys(hooks, keys) });
  return { name, keys, ...(credentials && { credentials }), setup };
}

/** Returns the plugin's config as `setup` gets it: validated, with defaults. @throws Error with a line for each mistake */
export async function configOf({ configSchema }: Definition, given: unknown): Promise<unknown> {
  const { value, findings } = await validateOwn(configSchema, {
    value: given,
    path: 'config',
    leaf: (text) => text,
    redact: errorText,
    doubtful: false,
  });
  if (findings.length > 0) throw new Error(findings.map(({ path, message }) => `${path}: ${message}`).join('\n'));
  return value;
}

/** Returns the faults that would stop a service's start or cause a warning, beyond those that the harness refuses itself. */
export function startFaults(
  definition: Definition,
  taps: PluginSet['taps'],
  { config, endpoints, path }: Services,
  given: { readonly services?: Partial<Services> | undefined },
): string[] {
  const faults = missingCounterparts([definition], taps).map(({ why }) => why);
  // Without a config from the test there is nothing to check.
  if (given.services?.config === undefined) return faults;
  const drafts = endpoints.map((endpoint, index) => ({ ...endpoint, path: `apis[0].endpoints[${index}]` }));
  const found = definition.check?.({ config, endpoints: drafts, interpolated: () => false, path }) ?? [];
  return [...faults, ...found.map(({ path: at, message }) => `${at}: ${message}`)];
}
