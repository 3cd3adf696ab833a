import {
  type ConfigKey,
  configKey,
  type EndpointKeys,
  type Services,
  type SimplePlugin,
  type Taps,
  Type,
} from './define.ts';

/** The config keys of a simple plugin: each may stand at an API and, overriding it, at an endpoint. */
export function configKeysOf(keys: EndpointKeys): readonly ConfigKey[] {
  return Object.entries(keys).map(([name, schema]) => configKey('shared', name, Type.Optional(schema)));
}

type Members = Readonly<Record<string, unknown>>;
type Hook = (context: Members) => unknown;

const none = Object.freeze({});

/** The hooks of a simple plugin, whose contexts have the endpoint's values of its keys as `keys`. */
export function hooksWithKeys(
  hooks: SimplePlugin['hooks'],
  keys: readonly ConfigKey[],
  endpoints: Services['endpoints'],
): Taps {
  if (keys.length === 0) return hooks;
  const values = new Map<unknown, object>(
    endpoints.map((endpoint) => [
      endpoint.id,
      Object.freeze(Object.fromEntries(keys.map((key) => [key.path, key.of(endpoint)]))),
    ]),
  );
  const withKeys = (hook: Hook): Hook => {
    return (context) => hook.call(hooks, extended(context, values.get(context.endpointId) ?? none));
  };
  return Object.fromEntries(Object.entries<unknown>(hooks).map(([name, hook]) => [name, withKeys(hook as Hook)]));
}

/** The context and one member more; what is made when it is first asked for still is. */
function extended(context: Members, keys: object): Members {
  const signal = { get: () => context.signal, enumerable: true };
  const members = { signal, ...Object.getOwnPropertyDescriptors(context), keys: { value: keys, enumerable: true } };
  return Object.freeze(Object.defineProperties({}, members));
}
