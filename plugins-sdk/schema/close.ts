import { type TObject, type TProperties, type TSchema, Type } from 'typebox';
import { isRecord } from './path.ts';

/** Returns the schema of a mapping that forbids other members. */
export function closedObject<P extends TProperties>(members: P, description?: string): TObject<P> {
  return Type.Object(members, { additionalProperties: false, ...(description !== undefined && { description }) });
}

/** The types of JSON Schema, and TypeBox's own. */
const TYPES: ReadonlySet<unknown> = new Set(
  'string number integer boolean object array null undefined void bigint symbol function constructor'.split(' '),
);

/** The keywords that hold a schema or a list of schemas, and those that hold schemas by names. */
const INNER =
  'items prefixItems additionalItems unevaluatedItems contains additionalProperties unevaluatedProperties propertyNames anyOf oneOf allOf not if then else';
const NAMED = 'properties patternProperties dependentSchemas $defs definitions';

/** Checks the types of schemas and of all inside them. @throws SyntaxError for one that TypeBox would take for any. */
function checkTypes(schemas: unknown): void {
  for (const schema of [schemas].flat().filter(isRecord)) {
    const unknown = [schema.type].flat().find((type) => type !== undefined && !TYPES.has(type));
    if (unknown !== undefined) throw new SyntaxError(`there is no type ${JSON.stringify(unknown)}`);
    for (const keyword of INNER.split(' ')) checkTypes(schema[keyword]);
    for (const keyword of NAMED.split(' ')) checkTypes(Object.values(Object(schema[keyword])));
  }
}

/**
 * Returns a schema that forbids unknown keys in each mapping, unless the mapping itself says what they may be. Schemas under
 * `allOf` and the like stay open: closed ones would exclude each other.
 * @throws SyntaxError for a type that does not exist.
 */
export function close<S extends TSchema>(schema: S): S {
  checkTypes(schema);
  return closed(schema);
}

/** Does what {@link close} does to a schema whose types are known. */
function closed<S extends TSchema>(schema: S): S {
  if (!isRecord(schema)) return schema;
  const changes: Record<string, unknown> = {};
  for (const keyword of ['anyOf', 'oneOf', 'prefixItems', 'items']) {
    const inner = schema[keyword];
    if (Array.isArray(inner)) changes[keyword] = inner.map((item) => closed(item));
    else if (isRecord(inner)) changes[keyword] = closed(inner);
  }
  if (isRecord(schema.properties)) {
    const members = Object.entries(schema.properties).map(([key, member]) => [
      key,
      isRecord(member) ? closed(member) : member,
    ]);
    changes.properties = Object.fromEntries(members);
    const says = ['additionalProperties', 'unevaluatedProperties', 'patternProperties', 'allOf', '$ref'];
    if (says.every((keyword) => !Object.hasOwn(schema, keyword))) changes.additionalProperties = false;
  }
  return copyWith(schema, changes);
}

/** Returns a copy with some members replaced. It copies non-enumerable properties, too, where TypeBox keeps marks. */
export function copyWith<T extends object>(original: T, changes: object): T {
  const copy = Object.create(Object.getPrototypeOf(original), Object.getOwnPropertyDescriptors(original));
  return Object.defineProperties(copy, Object.getOwnPropertyDescriptors(changes));
}
