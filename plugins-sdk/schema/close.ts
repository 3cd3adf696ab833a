import { type TObject, type TProperties, type TSchema, Type } from 'typebox';
import { isRecord, mapMembers } from './path.ts';

/** Returns the schema of a mapping that forbids other members. */
export function closedObject<P extends TProperties>(members: P, description?: string): TObject<P> {
  return Type.Object(members, { additionalProperties: false, ...(description !== undefined && { description }) });
}

/**
 * Returns a schema that forbids unknown keys in each mapping, unless the mapping itself says what they may be. Schemas under
 * `allOf` and the like stay open: closed ones would exclude each other. A schema with nothing to close is returned itself, so it
 * must not change afterwards.
 */
export function close<S extends TSchema>(schema: S): S {
  if (!isRecord(schema)) return schema;
  const changes: Record<string, unknown> = {};
  for (const keyword of ['anyOf', 'oneOf', 'prefixItems', 'items']) {
    const inner = schema[keyword];
    if (Array.isArray(inner)) changes[keyword] = inner.map((item) => close(item));
    else if (isRecord(inner)) changes[keyword] = close(inner);
  }
  if (isRecord(schema.properties)) {
    changes.properties = mapMembers(schema.properties, (member) => close(member as TSchema));
    const says = ['additionalProperties', 'unevaluatedProperties', 'patternProperties', 'allOf', '$ref'];
    if (says.every((keyword) => !Object.hasOwn(schema, keyword))) changes.additionalProperties = false;
  }
  return Object.keys(changes).length === 0 ? schema : copyWith(schema, changes);
}

/** Returns a copy with some members replaced. It copies non-enumerable properties, too, where TypeBox keeps marks. */
export function copyWith<T extends object>(original: T, changes: object): T {
  const copy = Object.create(Object.getPrototypeOf(original), Object.getOwnPropertyDescriptors(original));
  return Object.defineProperties(copy, Object.getOwnPropertyDescriptors(changes));
}
