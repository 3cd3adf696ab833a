import { keepsDigits } from '../../lib/json/numbers.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { type ApiDocument, type Block, listOf } from './document.ts';

/** The most levels and parts of a schema; deeper values may be anything. */
const MAX_DEPTH = 5;
const MAX_PARTS = 50;

const CIRCULAR = 'is part of itself: its inner values may be anything';
const TOO_LARGE = 'is too large: what lies deep in it may be anything';

const NUMBERS = ['minLength', 'maxLength', 'multipleOf', 'minItems', 'maxItems', 'minProperties', 'maxProperties'];
const LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const LOST = [
  ...['not', 'if', 'patternProperties', 'dependentRequired', 'dependentSchemas'],
  ...['propertyNames', 'contains', 'uniqueItems'],
];

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
function membersOf(document: ApiDocument, schema: Block, read: (value: unknown) => Block, lost: Set<string>): Block {
  const { type, nullable, pattern, required, properties, items, additionalProperties } = schema;
  for (const keyword of LOST) if ((schema[keyword] ?? false) !== false) lost.add(`"${keyword}" is not checked`);
  const hidden = new Set(readOnlyIn(document, schema));
  if (hidden.size > 0) lost.add('has members that are read-only, which are left out');
  // An author's /^a$/i would fit no text, since nothing comes before its beginning.
  const isQuoted = /^\/\^.*\/[a-z]*$/s.test(String(pattern));
  if (isQuoted) lost.add('"pattern" is in slashes, and is not checked');
  const inner = (value: unknown) => (typeof value === 'boolean' ? value : read(value));
  const shown = Object.entries(document.block(properties)).filter(([name]) => !hidden.has(name));
  const members = {
    // OpenAPI 3.0 has `nullable` in place of a type.
    type: typeof type === 'string' && nullable === true ? [type, 'null'] : type,
    enum: choicesOf(document, schema, lost),
    pattern: isQuoted ? undefined : pattern,
    ...Object.fromEntries(NUMBERS.map((keyword) => [keyword, numberAt(schema, keyword, lost)])),
    // In Swagger, `required` may be a boolean of the parameter itself.
    required: Array.isArray(required) ? required.filter((name) => !hidden.has(name)) : undefined,
    ...limitsOf(schema, 'minimum', 'exclusiveMinimum', lost),
    ...limitsOf(schema, 'maximum', 'exclusiveMaximum', lost),
    properties: isRecord(properties)
      ? Object.fromEntries(shown.map(([name, value]) => [name, inner(value)]))
      : undefined,
    items: isRecord(items) || typeof items === 'boolean' ? inner(items) : undefined,
    additionalProperties: additionalProperties === undefined ? undefined : inner(additionalProperties),
    ...Object.fromEntries(
      LISTS.map((keyword) => [keyword, Array.isArray(schema[keyword]) ? schema[keyword].map(inner) : undefined]),
    ),
  };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** Returns a limit of a number. In OpenAPI 3.0 and Swagger, an exclusive limit is a limit with a boolean beside it. */
function limitsOf(schema: Block, limit: string, exclusive: string, lost: Set<string>): Block {
  if (schema[exclusive] === true) return { [exclusive]: numberAt(schema, limit, lost) };
  return { [limit]: numberAt(schema, limit, lost), [exclusive]: numberAt(schema, exclusive, lost) };
}

function numberAt(schema: Block, keyword: string, lost: Set<string>): number | undefined {
  const value = schema[keyword];
  const number = numberIn(value);
  if (number === undefined && /\d/.test(String(value)))
    lost.add(`"${keyword}" is no number that can be kept, and is not checked`);
  return number;
}

/** Returns the number that a value or its text stands for; undefined for one that a double would round, and for any other value. */
function numberIn(value: unknown): number | undefined {
  const text = String(value);
  const number = Number(text);
  return /\d/.test(text) && Number.isFinite(number) && keepsDigits(text, number) ? number : undefined;
}

/** Returns the values of `enum`, or of `const` as the only one, in the schema's type; undefined if it has neither. */
function choicesOf(document: ApiDocument, schema: Block, lost: Set<string>): unknown[] | undefined {
  const stated = schema.const === undefined ? schema.enum : [schema.const];
  if (!Array.isArray(stated)) return undefined;
  const types = partsOf(document, schema).flatMap(({ type }) => type ?? []);
  const type = [...new Set(types)].filter((each) => each !== 'null').join();
  const choices = stated.flatMap((each) => typedChoices(type, each));
  if (!choices.includes(undefined)) return choices;
  lost.add('has a choice that is no number that can be kept, so that any value is taken');
  return undefined;
}

/** Returns a choice in its type, since authors quote numbers; undefined for a number that a double would round. */
function typedChoices(type: string, choice: unknown): unknown[] {
  const text = String(choice);
  if (type === 'string' && isScalar(choice)) return [text];
  if (type === 'boolean') return [/^(?:true|false)$/.test(text) ? text === 'true' : choice];
  if (/^(?:integer|number)$/.test(type)) return [/^[-+.\d]/.test(text) ? numberIn(text) : choice];
  return untypedChoices(choice);
}

/** Matches a text that may be a number of YAML or JSON. A longer one in hex stays a text, as in a config. */
const NUMBER = /^(?:0x[\da-f]{1,13}|0o[0-7]{1,13}|[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)$/i;

/**
 * Returns a choice without a type. The text 1.0 may be a text or a number: both are choices. A text that JavaScript would write
 * as it is, such as '1', was no number. Undefined if a double would round a number in it.
 */
function untypedChoices(choice: unknown): unknown[] {
  let isLost = false;
  const json = JSON.stringify(choice, (_key, value) => {
    if (typeof value !== 'string' || !NUMBER.test(value) || String(Number(value)) === value) return value;
    const number = numberIn(value);
    isLost ||= number === undefined;
    return number;
  });
  if (isLost) return [undefined];
  return json === JSON.stringify(choice) ? [choice] : [JSON.parse(json), choice];
}

/** Returns a schema and the schemas in it under some keywords, each once. */
export function partsOf(document: ApiDocument, schema: Block, keywords: readonly string[] = ['allOf']): Block[] {
  const parts = new Set([schema]);
  // The loop also visits parts that are added while it runs.
  for (const part of parts)
    for (const inner of keywords.flatMap((keyword) => part[keyword] ?? [])) parts.add(document.block(inner));
  return [...parts];
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
  return ['string', 'number', 'boolean'].includes(typeof value);
}
