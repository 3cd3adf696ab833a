import { canonicalJson, MAX_JSON_DEPTH } from './canonical-json.ts';
import { isFiniteJson } from './numbers.ts';
import type { Json } from './value.ts';

/** Wraps text that the caller has just written as JSON, without checking it. */
export let trustedJson: (text: string) => JsonText;

/** Immutable text that is known to be JSON, because it was written as JSON. */
export class JsonText {
  readonly json: string;
  /** A private field cannot be forged: the guard checks for it. */
  readonly #checked = true;

  protected constructor(json: string) {
    this.json = json;
    if (new.target === JsonText) Object.freeze(this);
  }

  static {
    trustedJson = (text) => new JsonText(text);
  }

  static is(value: unknown): value is JsonText {
    return typeof value === 'object' && value !== null && #checked in value;
  }

  /** Writes a value as JSON. @throws TypeError for a value without a JSON form: function, symbol, `undefined`, cycle, bigint. */
  static stringify(value: unknown): JsonText {
    // The result is typed as a string but is `undefined` for some values.
    const text: unknown = JSON.stringify(value);
    if (typeof text !== 'string') throw new TypeError('has no JSON form');
    return new JsonText(text);
  }
}

/** Returns {@link canonicalJson} as a {@link JsonText}, which `encode` may return unchecked. @throws CanonicalJsonError */
export function canonicalText(value: unknown): JsonText {
  return trustedJson(canonicalJson(value));
}

/** Matches all numbers too large for a double, and others: with exponents up to 99 these need 210 digits before the point. */
const HUGE_NUMBER = /[eE]\+?\d{3}|(?<!\d)\d{210}/;

/** Thrown for JSON text that exceeds a limit of {@link readJson}; the message says which. */
export class JsonLimitError extends Error {
  override readonly name = 'JsonLimitError';
}

/**
 * Parses JSON text, within the limits that every later stage can handle.
 *
 * @param deepest most levels
 * @throws SyntaxError
 * @throws JsonLimitError beyond these levels, and for a number that is too large for a double. A number does not count if a
 * later member of the same name replaces it.
 */
export function readJson(text: string, deepest = MAX_JSON_DEPTH): Json {
  // A shorter text cannot open and close that many levels.
  if (text.length > 2 * deepest && isDeeperThan(text, deepest))
    throw new JsonLimitError(`nested deeper than ${deepest} levels`);
  const value: Json = JSON.parse(text);
  if (HUGE_NUMBER.test(text) && !isFiniteJson(value))
    throw new JsonLimitError('a number is too large for standard JSON');
  return value;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
/** In ASCII a bracket differs from its brace in this one bit. */
const BRACE_BIT = 0x20;

/**
 * Checks whether JSON text opens more than `limit` arrays and objects inside each other, in one pass without parsing.
 * It does not check that the text is valid JSON.
 *
 * @param json the text or, which is faster, its bytes in UTF-8
 */
export function isDeeperThan(json: string | Uint8Array, limit: number): boolean {
  const bytes = typeof json === 'string' ? Buffer.from(json) : json;
  let depth = 0;
  let isString = false;
  for (let at = 0; at < bytes.length && depth <= limit; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) isString = !isString;
    else if (byte === BACKSLASH) at += 1;
    else if (isString) continue;
    else if ((byte | BRACE_BIT) === OPEN_BRACE) depth += 1;
    else if ((byte | BRACE_BIT) === CLOSE_BRACE) depth -= 1;
  }
  return depth > limit;
}
