import { randomUUID } from 'node:crypto';
import type { Json } from './value.ts';

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const DIGIT_ZERO = 0x30;

/** The number that a text in JSON's number syntax stands for, when a double keeps its digits. */
export function exactNumber(text: string): number | undefined {
  if (!JSON_NUMBER.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) && keepsDigits(text, value) ? value : undefined;
}

/** Whether the double that a decimal literal was converted to is written with the same digits again. */
export function keepsDigits(literal: string, value: number): boolean {
  return significant(literal) === significant(String(value));
}

/**
 * A finite number without an exponent: `1e21` as `1000000000000000000000`, `1e-7` as `0.0000001`. No double takes more than
 * 327 characters.
 */
export function plainDigits(value: number): string {
  const text = String(value);
  const [, sign = '', first = '', rest = '', power] = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(text) ?? [];
  if (power === undefined) return text;
  const exponent = Number(power);
  const digits = first + rest;
  // JavaScript writes an exponent from 21 on, and a double has at most 17 digits.
  return sign + (exponent < 0 ? `0.${'0'.repeat(-exponent - 1)}${digits}` : digits.padEnd(exponent + 1, '0'));
}

/** Whether JSON can carry every number: a double makes infinity of `1e400`. */
export function isFiniteJson(value: Json): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  return typeof value !== 'object' || value === null || Object.values(value).every(isFiniteJson);
}

/**
 * A string without an end goes to that of the text. To look for its end anew at each later quote would take seconds. A number is passed
 * over where it has at most fifteen digits and no exponent: every double keeps these.
 */
const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)|-?(?:[\d.]{16}|[\d.]+[eE])[-+.\deE]*/gs;

/**
 * JSON text with a replacement for each number that a double would round. By default that is a number that is too large
 * (`1e999`). Parsed, it is infinite, and {@link isFiniteJson} finds it.
 */
export function withoutRoundedNumbers(json: string, instead: (literal: string) => string = () => '1e999'): string {
  return json.replace(STRING_OR_NUMBER, (token) =>
    token.startsWith('"') || keepsDigits(token, Number(token)) ? token : instead(token),
  );
}

/** Begins a text that stands for a number. Nobody outside the process knows it, and it is the same in a URL. */
const MARK = `number${randomUUID().replaceAll('-', '')}`;
const MARKED = new RegExp(`"${MARK}([^"]*)"`, 'g');
const STRING_OR_ANY_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[-+.\deE]*/gs;

/** The value of JSON in which a marked text stands for each number that a double would round. @throws SyntaxError */
export function parseMarked(json: string): Json {
  return JSON.parse(withoutRoundedNumbers(json, (literal) => `"${MARK}${literal}"`));
}

/** The same with a marked text for each number, so that none is written otherwise. @param json that JSON.parse accepts. */
export function parseAllMarked(json: string): Json {
  const marked = json.replace(STRING_OR_ANY_NUMBER, (token) => (token.startsWith('"') ? token : `"${MARK}${token}"`));
  return JSON.parse(marked);
}

export function isMarked(value: Json): boolean {
  return JSON.stringify(value).includes(MARK);
}

/** The members in which there is a marked text. */
export function markedMembers(members: Readonly<Record<string, Json>>): Readonly<Record<string, Json>> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => isMarked(value)));
}

/** A marked value as `JSON.parse` reads it: with doubles. */
export function unmarked<T extends Json>(value: T): T {
  return JSON.parse(unmarkedJson(JSON.stringify(value)));
}

/** A marked value with the doubles just below its numbers, and just above. */
export function neighbours(marked: Json): readonly Json[] {
  const json = JSON.stringify(marked);
  return [-1n, 1n].map((step) =>
    JSON.parse(json.replace(MARKED, (_, literal: string) => String(neighbour(Number(literal), step)))),
  );
}

/** The next double; the last one stays. */
function neighbour(value: number, step: bigint): number {
  if (value === 0) return Number(step) * Number.MIN_VALUE;
  const bits = new BigInt64Array(new Float64Array([value]).buffer);
  const [all = 0n] = bits;
  bits[0] = all + (value < 0 ? -step : step);
  const [next = value] = new Float64Array(bits.buffer);
  return Number.isFinite(next) ? next : value;
}

/** JSON with the numbers of marked texts as they were written. */
export function unmarkedJson(json: string): string {
  return json.replace(MARKED, '$1');
}

/** A text with the numbers of marked texts in it as they were written. */
export function unmarkedText(text: string): string {
  return text.replaceAll(MARK, '');
}

/** Digits without sign, point, exponent, leading and trailing zeros; takes time in proportion to the literal. */
function significant(literal: string): string {
  const digits = literal.replace(/[eE].*|\D/gs, '');
  let start = 0;
  let end = digits.length;
  while (digits.charCodeAt(start) === DIGIT_ZERO) start++;
  while (end > start && digits.charCodeAt(end - 1) === DIGIT_ZERO) end--;
  return digits.slice(start, end);
}
