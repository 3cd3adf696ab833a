import { isCovered, keys, type Parameter } from '../../plugins-sdk/config.ts';
import type { Endpoint } from '../../plugins-sdk/index.ts';
import { expectKey } from './expect-key.ts';
import { Placeholders } from './json-path/placeholders.ts';

/** An endpoint, or what is known of it while the config is checked. */
export type Configured = Pick<Endpoint, 'block' | 'apiBlock'>;

/** Returns the names of an endpoint's parameters, which its paths may hold. */
export function declaredNames(endpoint: Configured): readonly string[] {
  return (keys.parameters.of(endpoint) ?? []).map(({ name }) => name);
}

/** Returns the names of the parameters that a receipt covers, each once. */
export function coveredNames(endpoint: Configured): readonly string[] {
  return [...new Set((keys.parameters.of(endpoint) ?? []).filter(isCovered).map(({ name }) => name))];
}

/** Returns the names of the parameters in the endpoint's JSONPaths. */
export function parametersInPaths(endpoint: Configured): ReadonlySet<string> {
  const placeholders = new Placeholders();
  for (const path of [keys.encoding.of(endpoint)?.path, expectKey.of(endpoint)?.fresh?.path])
    placeholders.mark(path ?? '', declaredNames(endpoint));
  return new Set(placeholders.names);
}

/**
 * Returns a test for parameters that requests must give: declared as required, or without a value but part of a JSONPath or a
 * whole segment of the path.
 */
export function requiredIn(endpoint: Configured): (parameter: Parameter) => boolean {
  const inPaths = parametersInPaths(endpoint);
  const segments = (keys.path.of(endpoint) ?? '').replace(/\?.*/s, '').split('/');
  const isPart = (name: string, place?: string) =>
    inPaths.has(name) || (place === 'path' && segments.includes(`{${name}}`));
  return ({ name, required, fixed, default: fallback, in: place }) =>
    required === true || (isPart(name, place) && fixed === undefined && fallback === undefined);
}
