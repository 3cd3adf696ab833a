import { isPlain } from '../../lib/json/value.ts';
import { WrongShape } from '../kernel.ts';

// Taken before any plugin is loaded, since a plugin may replace them.
const { stringify } = JSON;
const { values } = Object;

/** Characters of JSON text: what an upstream's answer may hold. */
const MAX_SIZE = 1024 * 1024;
const MAX_DEPTH = 256;
const TOO_LARGE = 'is too deep, too large or in a cycle';

/** The text would be longer than it may be. */
export class TooLong extends WrongShape {}

/**
 * The JSON text of a value that is plain JSON through and through. An undefined item of a list is null, and an undefined member is left
 * out, as `JSON.stringify` has it.
 *
 * @param longest characters of the text
 * @throws WrongShape on anything that JSON cannot carry unchanged: functions, NaN, class instances, cycles; and whatever
 * reading the value throws.
 */
export function plainText(value: unknown, longest = MAX_SIZE): string {
  let room = longest;
  const check = (member: unknown, depth: number): void => {
    // One value in many places is small as it is, and endless as text.
    room -= typeof member === 'string' ? member.length : 1;
    if (room < 0) throw new TooLong(TOO_LARGE);
    if (member === null || typeof member === 'string' || typeof member === 'boolean' || Number.isFinite(member)) return;
    if (typeof member !== 'object') throw new WrongShape(`holds a ${typeof member}, which JSON cannot carry`);
    if (depth === MAX_DEPTH) throw new WrongShape(TOO_LARGE);
    if (Array.isArray(member)) for (const item of member) check(item ?? null, depth + 1);
    else if (!isPlain(member)) throw new WrongShape('holds a class instance');
    else for (const inner of values(member)) if (inner !== undefined) check(inner, depth + 1);
  };
  check(value, 0);
  const text = stringify(value);
  if (text.length > longest) throw new TooLong(TOO_LARGE);
  return text;
}
