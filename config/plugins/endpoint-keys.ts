import { deepFreeze } from '../../lib/objects/deep-freeze.ts';
import { type ConfigKey, optionalKey } from '../../plugins-sdk/config-key.ts';
import type { EndpointKeys, SimplePlugin, Taps } from '../../plugins-sdk/define.ts';
import { withKeys } from '../../plugins-sdk/hooks/context.ts';
import type { Endpoint } from '../../plugins-sdk/kernel.ts';
import { withDefaults } from '../../plugins-sdk/schema/defaults.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { PluginProblem } from './plugin-problem.ts';

/**
 * The config keys of a simple plugin, by what its file exports as `keys`: each may stand at an API and, overriding it, at an endpoint.
 * @throws PluginProblem
 */
export function simpleKeys(exported: unknown = {}): readonly ConfigKey[] {
  if (!isEndpointKeys(exported)) throw new PluginProblem('its "keys" must be an object of schemas by name');
  return Object.entries(exported).map(([name, schema]) => optionalKey('apiOrEndpoint', name, schema));
}

function isEndpointKeys(value: unknown): value is EndpointKeys {
  return isRecord(value) && Object.entries(value).every(([name, schema]) => /^[\w-]+$/.test(name) && isRecord(schema));
}

type Members = Readonly<Record<string, unknown>>;
type Hook = (context: object) => unknown;

const none = Object.freeze({});

/** The values of a simple plugin's keys at an endpoint, with what their schemas have as `default`. */
export function keyValues(keys: readonly ConfigKey[], endpoint: Endpoint | undefined): object {
  if (endpoint === undefined) return none;
  return deepFreeze(Object.fromEntries(keys.map((key) => [key.path, withDefaults(key.schema, key.of(endpoint))])));
}

/** {@link keyValues} by endpoint, made once. */
export function keyValuesOf(keys: readonly ConfigKey[], endpoints: readonly Endpoint[]): (context: Members) => object {
  const values = new Map<unknown, object>(endpoints.map((endpoint) => [endpoint.id, keyValues(keys, endpoint)]));
  return ({ endpointId }) => values.get(endpointId) ?? none;
}

/** The hooks of a simple plugin, whose contexts have the endpoint's values of its keys as `keys`. */
export function hooksWithKeys(
  hooks: SimplePlugin['hooks'],
  keys: readonly ConfigKey[],
  values: (context: Members) => object,
): Taps {
  if (keys.length === 0) return hooks;
  const extended = (hook: Hook) => (context: Members) => hook.call(hooks, withKeys(context, values(context)));
  return Object.fromEntries(Object.entries<unknown>(hooks).map(([name, hook]) => [name, extended(hook as Hook)]));
}
