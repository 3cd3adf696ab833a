import type { Static, TSchema } from 'typebox';
import { Check } from 'typebox/value';
import type { AuthMethod, Endpoint } from '../kernel/values.ts';

/**
 * Prepares a value for each endpoint once, at the start.
 * @returns a look-up by endpoint. It throws for an object that is not one of `endpoints`.
 */
export function perEndpoint<T>(
  endpoints: readonly Endpoint[],
  prepare: (endpoint: Endpoint) => T,
): (endpoint: Endpoint) => T {
  return lookup(new Map(endpoints.map((endpoint) => [endpoint, prepare(endpoint)])));
}

/** Prepares a value for each auth object of one type, as `perEndpoint` does for endpoints. */
export function perMethod<S extends TSchema, T>(
  endpoints: readonly Endpoint[],
  type: string,
  schema: S,
  prepare: (method: Static<S>) => T,
): (method: AuthMethod) => T {
  const methods = new Set(endpoints.flatMap((endpoint) => endpoint.auth.filter((method) => method.type === type)));
  const prepared = [...methods].map((method): [AuthMethod, T] => {
    const { type: _, ...rest } = method;
    if (!Check(schema, rest)) throw new Error(`an auth object of type ${type} was not validated`);
    return [method, prepare(rest as Static<S>)];
  });
  return lookup(new Map(prepared));
}

function lookup<K, T>(prepared: ReadonlyMap<K, T>): (key: K) => T {
  return (key) => {
    const found = prepared.get(key);
    if (found !== undefined || prepared.has(key)) return found as T;
    throw new Error(
      'asked for something that was not prepared at start-up: only the very objects of services.endpoints are, which a test of a plugin gives to testPlugin',
    );
  };
}
