import { WrongShape } from '../../kernel/stages.ts';
import { isPlain } from '../../lib/json/value.ts';

// Read before any plugin is loaded, since a plugin could replace it.
const { stringify } = JSON;

/** Most characters of JSON text: as many as an upstream's response may have. */
const MAX_SIZE = 1024 * 1024;
const MAX_DEPTH = 256;
const TOO_LARGE = 'is too deep, too large or in a cycle';

/** Thrown if a value's JSON text would be too long. */
export class TooLong extends WrongShape {}

/**
 * Returns the JSON text of a value that is plain JSON at every depth. As in `JSON.stringify`, an undefined item of a list becomes
 * null, and an undefined member is left out.
 *
 * @param longest most characters of the text
 * @throws WrongShape for anything that JSON cannot carry unchanged: functions, NaN, class instances, cycles; and any error
 * that reading the value throws.
 */
export function plainText(value: unknown, longest = MAX_SIZE): string {
  // Each value takes at least two characters: its text and a comma. The last value has no comma, hence the 1.
  let room = longest + 1;
  const spend = (size: number): void => {
    room -= size;
    if (room < 0) throw new TooLong(TOO_LARGE);
  };
  const copy = (member: unknown, depth: number): unknown => {
    spend(typeof member === 'string' ? member.length + 2 : 2);
    if (member === null || typeof member === 'string' || typeof member === 'boolean' || Number.isFinite(member))
      return member;
    if (typeof member !== 'object') throw new WrongShape(`holds a ${typeof member}, which JSON cannot carry`);
    if (depth === MAX_DEPTH) throw new WrongShape(TOO_LARGE);
    if (Array.isArray(member)) return Array.from(member, (item) => copy(item ?? null, depth + 1));
    if (!isPlain(member)) throw new WrongShape('holds a class instance');
    const own: Record<string, unknown> = Object.create(null);
    for (const name of Object.keys(member)) {
      const inner: unknown = Reflect.get(member, name);
      if (inner === undefined) continue;
      spend(name.length + 3);
      own[name] = copy(inner, depth + 1);
    }
    return own;
  };
  const text = stringify(copy(value, 0));
  if (text.length > longest) throw new TooLong(TOO_LARGE);
  return text;
}
