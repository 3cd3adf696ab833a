import { type Static, type TSchema, Type } from 'typebox';
import { Check } from 'typebox/value';
import type { Endpoint } from '../kernel/values.ts';
import { isRecord } from '../lib/json/value.ts';

export type { /** The TypeScript type of a schema's values. */ Static } from 'typebox';
export { /** Makes TypeBox schemas, for `config`, config keys and auth types. */ Type } from 'typebox';

type Level = 'root' | 'server' | 'settings' | 'api' | 'endpoint' | 'apiOrEndpoint';

/** A typed key of the config. The plugin that lists it owns it. */
export interface ConfigKey<S extends TSchema = TSchema> {
  readonly level: Level;
  readonly path: string;
  readonly schema: S;
  /** Returns the value at an endpoint: of an `api` key the API's, of an `apiOrEndpoint` key the endpoint's, else the API's. */
  of(endpoint: Pick<Endpoint, 'block' | 'apiBlock'>): Static<S> | undefined;
  /** Returns the value in the whole configuration, for the levels `root`, `server` and `settings`. */
  in(config: Readonly<Record<string, unknown>>): Static<S> | undefined;
}

/** The keys by whose schemas a frozen block of a config has been checked: their values need no second check. */
export const validated = new WeakMap<object, ReadonlySet<ConfigKey>>();

/**
 * Declares a config key.
 * @param level where the key is: at the top (`root`), under `server` or `settings`, in an API, or in an endpoint.
 *   At `apiOrEndpoint` it may be in either, and the endpoint's value overrides the API's.
 * @param path dotted path below that level.
 * @param schema TypeBox schema of the value, in `Type.Optional` unless every such block must have the key. Its `description`
 *   goes into the published JSON Schema.
 */
export function configKey<S extends TSchema>(level: Level, path: string, schema: S): ConfigKey<S> {
  // A frozen block is part of a config and cannot change, so its value is read once: many plugins read the same keys.
  const known = new WeakMap<object, Static<S> | undefined>();
  const read = (block: unknown): Static<S> | undefined => {
    if (!isRecord(block)) return undefined;
    if (known.has(block)) return known.get(block);
    const value = path.split('.').reduce<unknown>((inner, key) => (isRecord(inner) ? inner[key] : undefined), block);
    const isValid = value === undefined || validated.get(block)?.has(key) === true || Check(schema, value);
    if (!isValid) throw new Error(`config key ${path} was not validated`);
    if (Object.isFrozen(block)) known.set(block, value as Static<S>);
    return value as Static<S>;
  };
  const key: ConfigKey<S> = {
    level,
    path,
    schema,
    of: ({ block, apiBlock }) => {
      if (level === 'api') return read(apiBlock);
      const value = read(block);
      return value === undefined && level === 'apiOrEndpoint' ? read(apiBlock) : value;
    },
    in: (config) => read(level === 'root' ? config : config[level]),
  };
  return key;
}

/** Declares an optional config key. See {@link configKey}. */
export function optionalKey<S extends TSchema>(level: Level, path: string, schema: S) {
  return configKey(level, path, Type.Optional(schema));
}
