import { plainDigits, unmarkedJson, unmarkedText } from '../../lib/json/numbers.ts';
import { typesIn } from '../../lib/json/value.ts';
import { isHeaderValue, type Parameter } from '../../plugins-sdk/config.ts';
import { type Json, Refusal } from '../../plugins-sdk/index.ts';
import { invalidParameter } from '../shared/parameter-value.ts';
import { type Members, setMember, stepsOf } from './body.ts';
import { hasDotSegment } from './dot-segments.ts';

/** The parts of an upstream request that come from parameters. */
export type RequestParts = ReturnType<ReturnType<typeof compilePlacement>>;

/** The values of all declared parameters, in the order of the config; `undefined` for a parameter without one. */
export type Values = readonly (Json | undefined)[];

interface Placeholder {
  readonly name: string;
  /** Index of its value. */
  readonly index: number;
}

/** Literal texts and placeholders in turn. */
type Parts = readonly (string | Placeholder)[];

export type Declared = Pick<Parameter, 'name' | 'style' | 'nested'> & {
  readonly in: NonNullable<Parameter['in']>;
  /** Set on body parameters that are sent as a form. */
  readonly form?: true;
};

function invalid(name: string): Refusal {
  return new Refusal(400, invalidParameter(name));
}

/** Called for a list or an object in a place that takes only text. @throws Refusal to refuse it */
export type OnNested = (name: string) => void;

export const refuseNested: OnNested = (name) => {
  throw invalid(name);
};

/** Returns the text of a value outside a JSON body. */
export function parameterText(value: Json): string {
  return typeof value === 'number' ? plainDigits(value) : unmarkedText(stringOf(value));
}

/** JavaScript's `String(value)`, which itself would throw for an object with a member called `toString`. */
function stringOf(value: Json): string {
  if (Array.isArray(value)) return value.map((item) => (item === null ? '' : stringOf(item))).join(',');
  return typeof value === 'object' && value !== null ? '[object Object]' : String(value);
}

function percentEncoded(name: string, value: string): string {
  // A lone surrogate has no UTF-8 form.
  if (!value.isWellFormed()) throw invalid(name);
  return encodeURIComponent(value);
}

/** Adds `name=value`, or for a list the pairs of its style. */
function addPairs(pairs: string[], { name, style }: Declared, value: Json, onNested: OnNested): void {
  const encoded = (item: Json) => {
    if (typeof item === 'object') onNested(name);
    return percentEncoded(name, parameterText(item));
  };
  const key = percentEncoded(name, name);
  if (style === undefined || !Array.isArray(value)) pairs.push(`${key}=${encoded(value)}`);
  else if (style === 'comma') pairs.push(`${key}=${value.map(encoded).join(',')}`);
  else pairs.push(...value.map((item) => `${key}=${encoded(item)}`));
}

function isPlaceholder(part: Parts[number]): part is Placeholder {
  return typeof part !== 'string';
}

function textsOf(parts: Parts, values: Values): string[] {
  return parts.map((part) => (isPlaceholder(part) ? parameterText(values[part.index] ?? '') : part));
}

function fill(parts: Parts, texts: readonly string[]): string {
  return parts.map((part, i) => (isPlaceholder(part) ? percentEncoded(part.name, texts[i] ?? '') : part)).join('');
}

/** Fills a segment of the path. @throws Refusal if the path would name another resource than the operator configured. */
function fillSegment(parts: Parts, values: Values): string {
  const texts = textsOf(parts, values);
  const segment = fill(parts, texts);
  if (segment !== '' && !hasDotSegment(texts.join(''))) return segment;
  const placed = parts.filter(isPlaceholder);
  const culprit = placed.find(({ index }) => hasDotSegment(parameterText(values[index] ?? ''))) ?? placed[0];
  throw invalid(culprit?.name ?? '');
}

/** Prepares the path: each segment is a list of literal texts and parameter names in turn. */
function compilePath(template: string, declared: readonly Declared[]): (values: Values) => string {
  const [path = '', ...query] = template.split('?');
  const index = (name: string) => declared.findIndex((parameter) => parameter.name === name && parameter.in === 'path');
  const compile = (text: string): Parts => {
    return text.split(/\{([^{}]*)\}/).map((part, i) => (i % 2 === 0 ? part : { name: part, index: index(part) }));
  };
  const segments = path.split('/').map((text) => {
    const parts = compile(text);
    return parts.some(isPlaceholder) ? parts : text;
  });
  const tail = query.length === 0 ? [] : compile(`?${query.join('?')}`);
  if (![...segments.flat(), ...tail].some(isPlaceholder)) return () => template;
  return (values) => {
    const filled = segments.map((parts) => (typeof parts === 'string' ? parts : fillSegment(parts, values)));
    return filled.join('/') + fill(tail, textsOf(tail, values));
  };
}

const none: Readonly<Record<string, string>> = Object.freeze({});

/**
 * Prepares the placement of an endpoint's parameters, as far as it depends on the config alone. The returned function takes a value
 * for each, in the same order. It returns percent-encoded texts for URLs, and the text of the body. It throws Refusal 400.
 */
export function compilePlacement(template: string, declared: readonly Declared[], onNested: OnNested = refuseNested) {
  const path = compilePath(template, declared);
  const isForm = declared.some((parameter) => parameter.form);
  const hasBody = declared.some((parameter) => parameter.in === 'body');
  return (values: Values) => {
    const query: string[] = [];
    const headers: [string, string][] = [];
    const cookies: string[] = [];
    const form: string[] = [];
    const body: Members = Object.create(null);
    for (let index = 0; index < declared.length; index++) {
      const value = values[index];
      const parameter = declared[index];
      if (value === undefined || parameter === undefined) continue;
      const { name, in: place } = parameter;
      if (parameter.form && value === null) throw invalid(name);
      if (parameter.form) addPairs(form, parameter, value, onNested);
      else if (place === 'body') setMember(body, stepsOf(parameter), value);
      else if (place === 'query') addPairs(query, parameter, value, onNested);
      else if (typeof value === 'object') onNested(name);
      if (place === 'header') headers.push([name, checked(name, parameterText(value), isWholeValue)]);
      else if (place === 'cookie') cookies.push(`${name}=${checked(name, parameterText(value), isCookieValue)}`);
    }
    return {
      path: path(values),
      query: query.length === 1 ? (query[0] ?? '') : query.join('&'),
      headers: headers.length === 0 ? none : Object.fromEntries(headers),
      cookie: cookies.length === 0 ? undefined : cookies.join('; '),
      body: isForm ? form.join('&') : hasBody ? unmarkedJson(JSON.stringify(body)) : undefined,
    };
  };
}

function checked(name: string, value: string, test: (value: string) => boolean): string {
  if (!test(value)) throw invalid(name);
  return value;
}

/** Whether a header value arrives unchanged: white space at its ends would be lost (RFC 9110, section 5.5). */
function isWholeValue(value: string): boolean {
  return isHeaderValue(value) && !/^[\t ]|[\t ]$/.test(value);
}

function isCookieValue(value: string): boolean {
  return isWholeValue(value) && !value.includes(';');
}

type Schema = Readonly<Record<string, Json>>;

const SCALAR = ['string', 'number', 'boolean'];

/**
 * Returns the schema of a parameter's value in its place. Outside a JSON body it takes scalars, and lists if there is a style,
 * unless the schema names types itself: a pattern alone would accept any list, and its text would be sent.
 */
export function schemaInPlace({ in: place, style, form }: Partial<Declared>, schema: Schema = {}): Schema {
  if ((place === 'body' && !form) || typesIn(schema).length > 0) return schema;
  return { type: style === undefined ? SCALAR : [...SCALAR, 'array'], ...schema };
}
