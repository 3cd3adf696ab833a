// Captured before any plugin is loaded, since a plugin may replace them.
const { freeze, isFrozen, values } = Object;

/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Checks whether a value is an object other than an array. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Checks whether a value is a text. */
export function isString(value: unknown): value is string {
  return typeof value === 'string';
}

/** Checks whether an object is plain, rather than the instance of a class, whose methods are not its own members. */
export function isPlain(value: object): value is Readonly<Record<string, unknown>> {
  const prototype: unknown = Object.getPrototypeOf(value);
  // The prototype of a plain object ends the chain, also if it comes from another realm.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Returns the types that a JSON Schema names, by itself or in the schemas that it is made of. */
export function typesIn({ type, anyOf, oneOf, allOf }: Readonly<Record<string, unknown>>): readonly unknown[] {
  const inner = [anyOf, oneOf, allOf].flatMap((list) => list ?? []);
  return [type ?? [], inner.map((one) => typesIn(Object(one)))].flat(2);
}

/** Parses a text as JSON; returns `undefined` if it is invalid. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Freezes a JSON value at every level. Recursion is safe: parameters and responses are bounded in size and depth. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || isFrozen(value)) return value;
  for (const member of values(value)) deepFreeze(member);
  return freeze(value);
}
