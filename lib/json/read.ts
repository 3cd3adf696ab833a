import { MAX_JSON_DEPTH } from './canonical-json.ts';
import { isFiniteJson } from './numbers.ts';
import { isDeeperThan } from './skip.ts';
import type { Json } from './value.ts';

/** Matches every number that is too large for a double, and some others. Such a number has an exponent of three digits, or 210 digits before one of two. */
const HUGE_NUMBER = /[eE]\+?\d{3}|(?<!\d)\d{210}/;

/** The text is JSON, and beyond what its reader can handle; the message says how. */
export class JsonLimitError extends Error {
  override readonly name = 'JsonLimitError';
}

/**
 * What `JSON.parse` makes of a text, if every later stage can handle it.
 *
 * @throws SyntaxError
 * @throws JsonLimitError beyond {@link MAX_JSON_DEPTH} levels, and for a number that is too large for a double. A number that a later
 * member of the same name replaces does not count.
 */
export function readJson(text: string): Json {
  // A shorter text cannot open and close as many.
  if (text.length > 2 * MAX_JSON_DEPTH && isDeeperThan(text, MAX_JSON_DEPTH))
    throw new JsonLimitError(`nested deeper than ${MAX_JSON_DEPTH} levels`);
  const value: Json = JSON.parse(text);
  if (HUGE_NUMBER.test(text) && !isFiniteJson(value))
    throw new JsonLimitError('a number is too large for standard JSON');
  return value;
}
