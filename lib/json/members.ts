import type { Json } from './value.ts';

/** The largest index that an array may have. */
const LAST_INDEX = 2 ** 32 - 2;
const OWN = { configurable: true, enumerable: true, writable: true };

export interface Members<T = Json> {
  [key: string]: T;
}

/**
 * An object in which V8 keeps integer keys in a dictionary from the start. Otherwise it changes between an array and a
 * dictionary at each gap between such keys, which takes seconds for an answer that has many.
 */
export function dictionary<T>(): Members<T> {
  const members: Members<T | undefined> = {};
  members[LAST_INDEX] = undefined;
  delete members[LAST_INDEX];
  return members as Members<T>;
}

/** Sets a member of any key. */
export function insert<T>(members: Members<T>, key: string, value: T): void {
  // Assigned, it would set the prototype.
  if (key === '__proto__') Object.defineProperty(members, key, { ...OWN, value });
  else members[key] = value;
}

/** What `Object.fromEntries` makes, for any keys. */
export function collected<T>(entries: readonly (readonly [string, T])[]): Members<T> {
  const members = dictionary<T>();
  for (const [key, value] of entries) insert(members, key, value);
  return members;
}
