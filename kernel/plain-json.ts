/**
 * A frozen copy of an object that is plain JSON through and through. It stays as it was checked, whatever
 * accessors and `toJSON` the object has.
 * @throws where JSON cannot carry it, or makes something else than an object of it.
 */
export function plainObject(value: unknown): Readonly<Record<string, unknown>> {
  const copy: unknown = JSON.parse(JSON.stringify(value), (_, member) => Object.freeze(member));
  if (!isRecord(copy)) throw new TypeError('is no JSON object');
  return copy;
}

/** Whether its members are its own: methods of a class are not its instances'. */
export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
