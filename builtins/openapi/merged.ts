import { isDeepStrictEqual } from 'node:util';

/**
 * What several plugins say, by name.
 * @param kind what the names are of, for the text of the error.
 * @throws Error where a name means two things.
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

export function contradiction(what: string): Error {
  return new Error(`the ${what} is described in two ways: the names that plugins describe must differ`);
}
