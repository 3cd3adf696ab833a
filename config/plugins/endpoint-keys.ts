import type { Endpoint } from '../../kernel/values.ts';
import { deepFreeze } from '../../lib/json/value.ts';
import { type ConfigKey, optionalKey } from '../../plugins-sdk/config-key.ts';
import type { EndpointKeys, SimplePlugin, Taps } from '../../plugins-sdk/define.ts';
import { insideOf } from '../../plugins-sdk/hooks/context.ts';
import { withDefaults } from '../../plugins-sdk/schema/own-config.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { checkTypes } from '../../plugins-sdk/schema/types.ts';
import { PluginProblem } from './plugin-problem.ts';

/**
 * Returns the config keys of a simple plugin from its export `keys`. Each may be set on an API, and overridden on an endpoint.
 * @throws PluginProblem unless the export is an object of schemas; SyntaxError for a wrong schema.
 */
export function simpleKeys(exported: unknown = {}): readonly ConfigKey[] {
  if (!isEndpointKeys(exported)) throw new PluginProblem('its "keys" must be an object of schemas by name');
  checkTypes(Object.values(exported));
  return Object.entries(exported).map(([name, schema]) => optionalKey('apiOrEndpoint', name, schema));
}

function isEndpointKeys(value: unknown): value is EndpointKeys {
  return isRecord(value) && Object.entries(value).every(([name, schema]) => /^[\w-]+$/.test(name) && isRecord(schema));
}

type Hook = (context: object) => unknown;

/**
 * Returns the hooks of a simple plugin with `keys` added to their contexts: the endpoint's values of the plugin's config keys, or
 * the `default` of their schemas.
 */
export function hooksWithKeys(hooks: SimplePlugin['hooks'], keys: readonly ConfigKey[]): Taps {
  if (keys.length === 0) return hooks;
  const made = new WeakMap<Endpoint, object>();
  const valuesAt = (endpoint: Endpoint): object => {
    const known = made.get(endpoint);
    if (known !== undefined) return known;
    const entries = keys.map((key) => [key.path, withDefaults(key.schema, key.of(endpoint))]);
    const values: object = deepFreeze(Object.fromEntries(entries));
    made.set(endpoint, values);
    return values;
  };
  const extended = (hook: Hook) => (context: Readonly<Record<string, unknown>>) => {
    const inside = insideOf(context);
    inside?.setKeys(inside.endpoint === undefined ? Object.freeze({}) : valuesAt(inside.endpoint));
    return hook.call(hooks, context);
  };
  return Object.fromEntries(Object.entries<unknown>(hooks).map(([name, hook]) => [name, extended(hook as Hook)]));
}
