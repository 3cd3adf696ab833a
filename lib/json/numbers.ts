import { randomUUID } from 'node:crypto';
import { isRecord, type Json } from './value.ts';

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Returns the number that a text in JSON's number syntax stands for; `undefined` if a double would lose digits of it. */
export function exactNumber(text: string): number | undefined {
  const value = Number(text);
  return JSON_NUMBER.test(text) && Number.isFinite(value) && keepsDigits(text, value) ? value : undefined;
}

/** Checks whether the double of a decimal literal is written with the same digits as the literal. */
export function keepsDigits(literal: string, value: number): boolean {
  // A double keeps fifteen digits, unless it is tiny.
  if (literal.length < 16 && Math.abs(value) > 1e-300 && Number.isFinite(value)) return true;
  return significant(literal) === significant(String(value));
}

/**
 * Writes a finite number without an exponent: `1e21` as `1000000000000000000000`, `1e-7` as `0.0000001`. No double takes more
 * than 327 characters.
 */
export function plainDigits(value: number): string {
  const text = String(value);
  const [, sign = '', first = '', rest = '', power] = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(text) ?? [];
  if (power === undefined) return text;
  const exponent = Number(power);
  const digits = first + rest;
  // JavaScript writes positive exponents from 21 on, and a double has at most 17 digits: none come after the point.
  return sign + (exponent < 0 ? `0.${'0'.repeat(-exponent - 1)}${digits}` : digits.padEnd(exponent + 1, '0'));
}

/** Checks whether JSON can express every number in a value. The double of `1e400` is infinity, which JSON cannot. */
export function isFiniteJson(value: Json): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  return typeof value !== 'object' || value === null || Object.values(value).every(isFiniteJson);
}

/**
 * Matches strings, and numbers that a double might round. A number with at most fifteen digits and no exponent is passed over:
 * every double keeps these. An unterminated string matches up to the end of the text, because searching for its end again from
 * each later quote would take seconds.
 */
const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)|-?(?:[\d.]{16}|[\d.]+[eE])[-+.\deE]*/gs;

/**
 * Replaces each number in JSON text that a double would round. The default replacement, `1e999`, is parsed as infinity, which
 * {@link isFiniteJson} finds.
 */
export function withoutRoundedNumbers(json: string, instead: (literal: string) => string = () => '1e999'): string {
  return json.replace(STRING_OR_NUMBER, (token) =>
    token.startsWith('"') || keepsDigits(token, Number(token)) ? token : instead(token),
  );
}

/** The prefix of a text that stands for a number. It is secret to the process, and URL encoding leaves it unchanged. */
const MARK = `number${randomUUID().replaceAll('-', '')}`;
const MARKED = new RegExp(`"${MARK}([^"]*)"`, 'g');
const STRING_OR_ANY_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[-+.\deE]*/gs;

/** Parses JSON, with a marked text in place of each number that a double would round. @throws SyntaxError */
export function parseMarked(json: string): Json {
  return JSON.parse(withoutRoundedNumbers(json, (literal) => `"${MARK}${literal}"`));
}

/** Matches every number that a double may round, and some others: it has 16 digits, or an exponent of three. */
export const MAY_BE_INEXACT = /(?:^|[:,[\s])-?(?:[\d.]{16}|[\d.]+[eE][-+]?\d{3})/;

/**
 * Parses JSON, with a symbol in place of each number that a double would round: the number's text is its description. Undefined
 * if there is surely none. @param json JSON without numbers too large for a double
 */
export function parseExact(json: string): unknown {
  return MAY_BE_INEXACT.test(json) ? withSymbols(parseMarked(json)) : undefined;
}

/** Puts a symbol in the place of each marked text. A reviver of `JSON.parse` takes several times as long. */
function withSymbols(value: unknown): unknown {
  if (typeof value === 'string' && value.startsWith(MARK)) return Symbol(value.slice(MARK.length));
  if (Array.isArray(value)) return value.map(withSymbols);
  if (isRecord(value)) for (const key of Object.keys(value)) Reflect.set(value, key, withSymbols(value[key]));
  return value;
}

/** Parses JSON, with a marked text in place of every number, so that each keeps its spelling. @param json valid JSON. */
export function parseAllMarked(json: string): Json {
  const marked = json.replace(STRING_OR_ANY_NUMBER, (token) => (token.startsWith('"') ? token : `"${MARK}${token}"`));
  return JSON.parse(marked);
}

/** Checks whether a value contains a marked text. */
export function isMarked(value: Json): boolean {
  return JSON.stringify(value).includes(MARK);
}

/** Returns the members that contain a marked text. */
export function markedMembers(members: Readonly<Record<string, Json>>): Readonly<Record<string, Json>> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => isMarked(value)));
}

/** Returns a marked value as `JSON.parse` would have read it: with doubles. */
export function unmarked<T extends Json>(value: T): T {
  return JSON.parse(unmarkedJson(JSON.stringify(value)));
}

/** Returns JSON with each marked text replaced by its number, spelt as it was. */
export function unmarkedJson(json: string): string {
  return json.replace(MARKED, '$1');
}

/** Returns a text without the prefixes of marked texts, so that their numbers read as they were spelt. */
export function unmarkedText(text: string): string {
  return text.replaceAll(MARK, '');
}

/** Returns the digits without sign, point, exponent, leading and trailing zeros, in linear time. */
function significant(literal: string): string {
  const digits = literal.replace(/[eE].*|\D/gs, '');
  let start = 0;
  let end = digits.length;
  while (digits[start] === '0') start++;
  while (end > start && digits[end - 1] === '0') end--;
  return digits.slice(start, end);
}
