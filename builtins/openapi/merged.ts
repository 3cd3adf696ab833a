import { isDeepStrictEqual } from 'node:util';

/**
 * Merges the descriptions of several plugins, by name.
 * @param kind the kind of thing that is named, for the text of the error.
 * @throws Error where one name has two meanings.
 */
export function merged<T>(
  kind: string,
  parts: readonly (Readonly<Record<string, T>> | undefined)[],
): Readonly<Record<string, T>> {
  const all = new Map<string, T>();
  for (const [name, value] of parts.flatMap((part = {}) => Object.entries(part))) {
    if (all.has(name) && !isDeepStrictEqual(all.get(name), value)) throw contradiction(`${kind} "${name}"`);
    all.set(name, value);
  }
  return Object.fromEntries(all);
}

/** Makes the error for a thing that two plugins describe differently. */
export function contradiction(what: string): Error {
  return new Error(`the ${what} is described in two ways: the names that plugins describe must differ`);
}
