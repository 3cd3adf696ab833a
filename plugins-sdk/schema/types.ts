import { isRecord } from './path.ts';

/** The types of JSON Schema, and TypeBox's own. */
const TYPES: ReadonlySet<unknown> = new Set(
  'string number integer boolean object array null undefined void bigint symbol function constructor'.split(' '),
);

/** The keywords that hold a schema or a list of schemas, and those that hold schemas by names. */
const INNER =
  'items prefixItems additionalItems unevaluatedItems contains additionalProperties unevaluatedProperties propertyNames anyOf oneOf allOf not if then else';
const NAMED = 'properties patternProperties dependentSchemas $defs definitions';

/**
 * Checks the types of a plugin's schema, or of several, and of all inside them.
 * @throws SyntaxError for a type that does not exist, which TypeBox would take for any.
 */
export function checkTypes(schemas: unknown): void {
  for (const schema of [schemas].flat().filter(isRecord)) {
    const unknown = [schema.type].flat().find((type) => type !== undefined && !TYPES.has(type));
    if (unknown !== undefined) throw new SyntaxError(`there is no type ${JSON.stringify(unknown)}`);
    for (const keyword of INNER.split(' ')) checkTypes(schema[keyword]);
    for (const keyword of NAMED.split(' ')) checkTypes(Object.values(Object(schema[keyword])));
  }
}
