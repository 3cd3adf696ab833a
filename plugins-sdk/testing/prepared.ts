import { METHODS } from 'node:http';
import { RegistrationError } from '../../kernel/registry.ts';
import type { Behaviour, Definition, EndpointKeys } from '../define.ts';
import { hooksWithKeys, keyValues } from '../endpoint-keys.ts';
import type { Endpoint } from '../kernel.ts';
import { validateOwn } from '../schema/own-config.ts';
import { checkBehaviour, checkDefinition, isDefinition, simpleKeys, simplePlugin } from '../shape.ts';

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
  const { name, hooks } = simplePlugin(plugin, 'the plugin');
  const keys = simpleKeys(exported);
  const values = ({ requestId }: { readonly requestId?: unknown }) => keyValues(keys, endpointOf(requestId));
  return { name, keys, setup: () => ({ hooks: hooksWithKeys(hooks, keys, values) }) };
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

/** What `setup` returned, with routes that HTTP could serve. @throws PluginProblem, RegistrationError */
export function checked(name: string, made: Behaviour): Behaviour {
  const behaviour = checkBehaviour(made);
  // What is no list of routes is for the registry to refuse.
  const routes: readonly unknown[] = Array.isArray(behaviour.routes) ? behaviour.routes : [];
  for (const route of routes) checkRoute(name, route);
  return behaviour;
}

function checkRoute(name: string, route: unknown): void {
  const { method, path, admit, maxBody = 0 }: Readonly<Record<string, unknown>> = Object(route);
  if (typeof method !== 'string' || typeof path !== 'string') return;
  const fail = (why: string) => new RegistrationError(`plugin "${name}": route ${method} ${path}: ${why}`);
  if (path !== '*' && !path.startsWith('/')) throw fail('the path must start with a slash, or be *');
  if (typeof admit !== 'boolean') throw fail('"admit" must be true or false');
  if (!Number.isInteger(maxBody) || Number(maxBody) < 0) throw fail('"maxBody" must be a number of bytes');
  if (!METHODS.includes(method.toUpperCase())) throw fail('there is no such method');
}
