import { isPlain } from './value.ts';

/** Most levels of arrays and objects inside each other. */
export const MAX_JSON_DEPTH = 256;

/** Thrown by {@link canonicalJson} and {@link jcs}. */
export class CanonicalJsonError extends Error {
  override readonly name = 'CanonicalJsonError';
}

// Characters that JSON.stringify may escape. A string without them only needs quotes.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what JSON escapes
const NEEDS_ESCAPING = /[\u0000-\u001f"\\\ud800-\udfff]/;
const LONE_SURROGATE = /\p{Surrogate}/u;
// Up to this length insertion sort is faster than Array.prototype.sort. In longer lists its quadratic worst case would show.
const SHORT_LIST = 32;

/**
 * Returns the stable text of a JSON value: no white space, and the keys of every object sorted by UTF-16 code units. Numbers
 * and strings are as JSON.stringify writes them (a lone surrogate as an escape). `undefined`, also as a key's value, is `null`.
 * For a value that came from JSON.parse and has no lone surrogates this is RFC 8785.
 *
 * @throws CanonicalJsonError for a non-finite number, a bigint, a function or a symbol; for an object that is neither plain
 * nor an array, since a Date, Map or Buffer has no single JSON form; and for a value that contains itself, or is nested deeper
 * than {@link MAX_JSON_DEPTH}.
 */
export function canonicalJson(value: unknown): string {
  return write(value, 0, false);
}

/**
 * Returns the text of the JSON Canonicalization Scheme (RFC 8785): as {@link canonicalJson}, but strict about values that JSON
 * cannot express.
 *
 * @throws CanonicalJsonError also for `undefined` anywhere and for a lone surrogate in a string or key.
 */
export function jcs(value: unknown): string {
  return write(value, 0, true);
}

function write(value: unknown, depth: number, strict: boolean): string {
  switch (typeof value) {
    case 'string':
      return quote(value, strict);
    case 'number':
      if (!Number.isFinite(value)) throw new CanonicalJsonError(`${value} cannot be written as JSON`);
      return `${value}`;
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      return writeContainer(value, depth + 1, strict);
    case 'undefined':
      if (!strict) return 'null';
  }
  throw new CanonicalJsonError(`a value of type ${typeof value} cannot be written as JSON`);
}

function writeContainer(value: object, depth: number, strict: boolean): string {
  if (depth > MAX_JSON_DEPTH)
    throw new CanonicalJsonError(`the value contains itself or is nested deeper than ${MAX_JSON_DEPTH} levels`);
  if (Array.isArray(value)) return writeArray(value, depth, strict);
  if (isPlain(value)) return writeRecord(value, depth, strict);
  throw new CanonicalJsonError('an object that is neither plain nor an array cannot be written as JSON');
}

function writeArray(items: readonly unknown[], depth: number, strict: boolean): string {
  if (items.length === 0) return '[]';
  let text = `[${write(items[0], depth, strict)}`;
  for (let i = 1; i < items.length; i++) text += `,${write(items[i], depth, strict)}`;
  return `${text}]`;
}

function writeRecord(record: Readonly<Record<string, unknown>>, depth: number, strict: boolean): string {
  let text = '{';
  let separator = '';
  for (const key of sorted(Object.keys(record))) {
    text += `${separator}${quote(key, strict)}:${write(record[key], depth, strict)}`;
    separator = ',';
  }
  return `${text}}`;
}

function quote(text: string, strict: boolean): string {
  if (!NEEDS_ESCAPING.test(text)) return `"${text}"`;
  if (strict && LONE_SURROGATE.test(text))
    throw new CanonicalJsonError('a string with a lone surrogate has no canonical JSON (RFC 8785)');
  return JSON.stringify(text);
}

function sorted(keys: string[]): string[] {
  if (keys.length > SHORT_LIST) return keys.sort();
  for (let i = 1; i < keys.length; i++) {
    const key = keys[i] ?? '';
    let place = i;
    // A look before the list's beginning would cost more than the sorting.
    for (; place > 0 && (keys[place - 1] ?? '') > key; place--) keys[place] = keys[place - 1] ?? '';
    keys[place] = key;
  }
  return keys;
}
