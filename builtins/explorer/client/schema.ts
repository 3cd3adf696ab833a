import { typesIn } from '../../../lib/json/value.ts';
import type { PublicParameter } from '../endpoint.ts';

type Schema = NonNullable<PublicParameter['schema']>;

const TYPES: Readonly<Record<string, string>> = {
  string: 'a text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
};

/** Words for keywords of JSON Schema, in the order in which a person reads them. */
const WORDS: Readonly<Record<string, (value: string) => string>> = {
  type: (type) => type,
  enum: (values) => `one of ${values}`,
  const: (value) => `exactly ${value}`,
  minimum: (least) => `at least ${least}`,
  exclusiveMinimum: (bound) => `more than ${bound}`,
  maximum: (most) => `at most ${most}`,
  exclusiveMaximum: (bound) => `less than ${bound}`,
  multipleOf: (step) => `a multiple of ${step}`,
  minLength: (least) => `with ${least} or more characters`,
  maxLength: (most) => `with ${most} or fewer characters`,
  pattern: (pattern) => `matching the pattern ${pattern}`,
  minItems: (least) => `with ${least} or more items`,
  maxItems: (most) => `with ${most} or fewer items`,
};

/** Keywords that do not restrict the value. */
const SILENT = new Set(['title', 'description', 'examples']);

function listed(value: unknown): string {
  const texts = [value].flat().map((each) => (typeof each === 'string' ? each : JSON.stringify(each)));
  return texts.join(', ');
}

/** Describes a schema in words. Keywords without words here follow as JSON. */
export function boundsOf({ type, ...schema }: Schema): string[] {
  const types = [type ?? []].flat().map((name) => TYPES[String(name)] ?? String(name));
  const known: Schema = { ...(types.length > 0 && { type: types.join(' or ') }), ...schema };
  const words = Object.entries(WORDS).flatMap(([keyword, say]) =>
    Object.hasOwn(known, keyword) ? [say(listed(known[keyword]))] : [],
  );
  const rest = Object.entries(schema).filter(([keyword]) => !(Object.hasOwn(WORDS, keyword) || SILENT.has(keyword)));
  return [
    ...(words.length > 0 ? [`Must be ${words.join(', ')}.`] : []),
    ...(rest.length > 0 ? [`Must fit this JSON Schema: ${JSON.stringify(Object.fromEntries(rest))}`] : []),
  ];
}

/** Returns whether a schema takes lists, and no text. */
export function takesLists(schema: Schema): boolean {
  const types = typesIn(schema);
  return types.includes('array') && !types.includes('string');
}

/** Returns whether a text is a number or a boolean for a schema that takes no texts. */
export function isLiteral(schema: Schema, text: string): boolean {
  const types = typesIn(schema);
  const takesText = types.length === 0 || types.includes('string');
  return !takesText && /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false)$/.test(text);
}
