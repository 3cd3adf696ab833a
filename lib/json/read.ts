import { MAX_JSON_DEPTH } from './canonical-json.ts';
import { isDeeperThan } from './depth.ts';
import { isFiniteJson } from './numbers.ts';
import type { Json } from './value.ts';

/** Matches all numbers too large for a double, and others: with exponents up to 99 these need 210 digits before the point. */
const HUGE_NUMBER = /[eE]\+?\d{3}|(?<!\d)\d{210}/;

/** Thrown for JSON text that exceeds a limit of {@link readJson}; the message says which. */
export class JsonLimitError extends Error {
  override readonly name = 'JsonLimitError';
}

/**
 * Parses JSON text, within the limits that every later stage can handle.
 *
 * @throws SyntaxError
 * @throws JsonLimitError beyond {@link MAX_JSON_DEPTH} levels, and for a number that is too large for a double. A number does
 * not count if a later member of the same name replaces it.
 */
export function readJson(text: string): Json {
  // A shorter text cannot open and close that many levels.
  if (text.length > 2 * MAX_JSON_DEPTH && isDeeperThan(text, MAX_JSON_DEPTH))
    throw new JsonLimitError(`nested deeper than ${MAX_JSON_DEPTH} levels`);
  const value: Json = JSON.parse(text);
  if (HUGE_NUMBER.test(text) && !isFiniteJson(value))
    throw new JsonLimitError('a number is too large for standard JSON');
  return value;
}
