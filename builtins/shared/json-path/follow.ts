/** The location of a value in a JSON document: member names and array indices from the root. */
export type Location = readonly (string | number)[];

/** A value found in a document. */
export interface Match {
  readonly value: unknown;
  readonly location: Location;
}

/** Returns the value at a location, if there is one. Texts have no members, and arrays only their elements. */
export function follow(document: unknown, names: Location): Match | undefined {
  const location: (string | number)[] = [];
  let value = document;
  for (const name of names) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    const isList = Array.isArray(value);
    if (isList && name === 'length') return undefined;
    location.push(isList ? Number(name) : String(name));
    value = Reflect.get(value, name);
  }
  return { value, location };
}
