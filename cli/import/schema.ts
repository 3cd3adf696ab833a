import { writtenNumbers } from '../../config/tree.ts';
import { keepsDigits } from '../../lib/json/numbers.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { type ApiDocument, type Block, listOf } from './document.ts';
import { literal, literals } from './text.ts';

/** The most levels and parts of a schema; deeper values may be anything. */
const MAX_DEPTH = 5;
const MAX_PARTS = 50;

const CIRCULAR = 'is part of itself: its inner values may be anything';
const TOO_LARGE = 'is too large: what lies deep in it may be anything';

const KEPT = [
  ...['pattern', 'minLength', 'maxLength', 'multipleOf'],
  ...['minItems', 'maxItems', 'minProperties', 'maxProperties', 'required'],
];
const LIMITS = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'];
const LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const LOST = ['not', 'if', 'patternProperties', 'dependentRequired', 'dependentSchemas', 'propertyNames', 'contains'];

/**
 * Converts a schema for a parameter of a config. The converted schema accepts the same values, or more.
 * @param lose is called with each reason why it restricts less than the document's.
 * @throws Inexpressible for a reference without a target.
 */
export function readSchema(document: ApiDocument, stated: unknown, lose: (reason: string) => void): Block {
  const lost = new Set<string>();
  const within = new Set<Block>();
  let parts = 0;
  const read = (value: unknown): Block => {
    const schema = document.block(value);
    const isCircular = within.has(schema);
    if (isCircular || within.size === MAX_DEPTH || ++parts > MAX_PARTS) {
      lost.add(isCircular ? CIRCULAR : TOO_LARGE);
      return {};
    }
    within.add(schema);
    const members = membersOf(document, schema, read, lost);
    within.delete(schema);
    return members;
  };
  const schema = read(stated);
  lost.forEach(lose);
  return schema;
}

/** Converts the members of a schema. @param read converts an inner schema. @param lost the reasons why it restricts less. */
function membersOf(document: ApiDocument, stated: Block, read: (value: unknown) => Block, lost: Set<string>): Block {
  const rounded = [...LIMITS, ...KEPT].filter((key) => isRounded(stated[key], writtenNumbers(stated).get(key)));
  for (const key of rounded) lost.add(`"${key}" has more digits than a number keeps, and is not checked`);
  // An author's /^a$/i would fit no text, since nothing comes before its beginning.
  const quoted = /^\/\^.*\/[a-z]*$/s.test(String(stated.pattern)) ? ['pattern'] : [];
  for (const key of quoted) lost.add(`"${key}" is in slashes, and is not checked`);
  const schema: Block = { ...stated, ...Object.fromEntries([...rounded, ...quoted].map((key) => [key, undefined])) };
  for (const keyword of LOST) if (schema[keyword] !== undefined) lost.add(`"${keyword}" is not checked`);
  if (schema.uniqueItems === true) lost.add('"uniqueItems" is not checked');
  const inner = (value: unknown) => (typeof value === 'boolean' ? value : read(value));
  const { items, additionalProperties } = schema;
  const hidden = new Set(readOnlyIn(document, schema));
  if (hidden.size > 0) lost.add('has members that are read-only, which are left out');
  const properties = Object.entries(document.block(schema.properties)).filter(([name]) => !hidden.has(name));
  // OpenAPI 3.0 has `nullable` in place of a type.
  const type = typeof schema.type === 'string' && schema.nullable === true ? [schema.type, 'null'] : schema.type;
  const choices = choicesOf(stated);
  const isCut = choices?.includes(undefined) === true;
  if (isCut) lost.add('has a choice with more digits than a number keeps, so that any value is taken');
  const members: Record<string, unknown> = {
    ...(type === undefined ? {} : { type: literals(type) }),
    ...(choices === undefined || isCut ? {} : { enum: choices }),
    ...Object.fromEntries(KEPT.flatMap((key) => (schema[key] === undefined ? [] : [[key, literals(schema[key])]]))),
    ...limitsOf(schema),
    ...(isRecord(schema.properties)
      ? { properties: Object.fromEntries(properties.map(([name, value]) => [name, inner(value)])) }
      : {}),
    ...(isRecord(items) || typeof items === 'boolean' ? { items: inner(items) } : {}),
    ...(additionalProperties === undefined ? {} : { additionalProperties: inner(additionalProperties) }),
  };
  for (const key of LISTS) if (Array.isArray(schema[key])) members[key] = schema[key].map(inner);
  // In Swagger, `required` may be a boolean of the parameter itself.
  if (Array.isArray(members.required)) members.required = members.required.filter((name) => !hidden.has(name));
  else delete members.required;
  return members;
}

/** Returns the limits of a number. In OpenAPI 3.0 and Swagger, an exclusive limit is a limit with a boolean beside it. */
function limitsOf(schema: Block): Block {
  const stated = ['Minimum', 'Maximum'].flatMap((end) => {
    const limit = end.toLowerCase();
    const exclusive = `exclusive${end}`;
    if (schema[exclusive] === true) return Object.entries({ [exclusive]: schema[limit] });
    return Object.entries({ [limit]: schema[limit], [exclusive]: schema[exclusive] });
  });
  return Object.fromEntries(stated.filter(([, value]) => Number.isFinite(value)));
}

/** Matches a number that an author may have quoted. */
const NUMBER = /^[-+]?\d{1,15}(?:\.\d{1,15})?$/;

/** Returns the values of `enum`, or of `const` as the only one, in the schema's type; undefined if it has neither. */
function choicesOf(schema: Block): unknown[] | undefined {
  const { const: only, enum: all } = schema;
  const type = String([schema.type].flat().filter((each) => each !== 'null'));
  if (only !== undefined) return [choiceOf(type, only, writtenNumbers(schema).get('const'))];
  if (!Array.isArray(all)) return undefined;
  return all.map((each, i) => choiceOf(type, each, writtenNumbers(all).get(i)));
}

/**
 * Returns a choice in its type, since authors quote numbers; undefined for a number that a double has rounded.
 * @param written a number as in YAML, which reads 1.10 as 1.1.
 */
function choiceOf(type: string, choice: unknown, written?: string): unknown {
  const text = written ?? String(choice);
  if (type === 'string' && isScalar(choice) && (written !== undefined || !isRounded(choice))) return literal(text);
  if (isRounded(choice, written)) return undefined;
  if (type === 'boolean') return choice === 'true' || (choice === 'false' ? false : literals(choice));
  return literals(/^(?:integer|number)$/.test(type) && NUMBER.test(text) ? Number(text) : choice);
}

/** Returns whether a double would round a number. @param written it, as in YAML; of JSON such a number is infinite. */
function isRounded(value: unknown, written?: string): boolean {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return false;
  return written === undefined ? !Number.isFinite(value) : !keepsDigits(written, value);
}

/** Returns the values that a schema, its parts or its items list. */
export function valuesOf(document: ApiDocument, schema: Block, seen = new Set<Block>()): readonly unknown[] {
  if (Array.isArray(schema.enum)) return schema.enum;
  if (schema.const !== undefined) return [schema.const];
  if (seen.has(schema)) return [];
  seen.add(schema);
  const { items, allOf, anyOf, oneOf } = schema;
  const parts = [items, ...[allOf, anyOf, oneOf].flatMap(listOf)];
  return parts.flatMap((part) => (part === undefined ? [] : valuesOf(document, document.block(part), seen)));
}

/** Returns a schema and the schemas of its `allOf`, each once. */
export function partsOf(document: ApiDocument, schema: Block, seen = new Set<Block>()): Block[] {
  if (seen.has(schema)) return [];
  seen.add(schema);
  return [schema, ...listOf(schema.allOf).flatMap((part) => partsOf(document, document.block(part), seen))];
}

/** Returns an object's read-only members, which only the upstream sets and no request has. */
export function readOnlyIn(document: ApiDocument, schema: Block): string[] {
  const members = partsOf(document, schema).flatMap(({ properties }) => Object.entries(document.block(properties)));
  return members.filter(([, member]) => isReadOnly(document, member)).map(([name]) => name);
}

function isReadOnly(document: ApiDocument, member: unknown): boolean {
  const schema = document.block(member);
  const said = [member, schema, ...listOf(schema.allOf).flatMap((part) => [part, document.block(part)])];
  return said.some((each) => isRecord(each) && each.readOnly === true);
}

export function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === 'number' ? Number.isFinite(value) : ['string', 'boolean'].includes(typeof value);
}
