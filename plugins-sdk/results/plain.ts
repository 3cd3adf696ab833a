import { isPlain } from '../../lib/json/value.ts';
import { WrongShape } from '../kernel.ts';

// Taken before any plugin is loaded, since a plugin may replace them.
const { stringify } = JSON;
const { keys: keysOf } = Object;
const { get } = Reflect;

/** Characters of JSON text: what an upstream's answer may hold. */
const MAX_SIZE = 1024 * 1024;
const MAX_DEPTH = 256;
const TOO_LARGE = 'is too deep, too large or in a cycle';

/** The text would be longer than it may be. */
export class TooLong extends WrongShape {}

/**
 * The JSON text of a value that is plain JSON through and through. Each member is read once.
 *
 * @param longest characters of the text
 * @throws WrongShape on anything that JSON cannot carry unchanged: functions, NaN, class instances, cycles; and whatever
 * reading the value throws.
 */
export function plainText(value: unknown, longest = MAX_SIZE): string {
  const writer = new PlainWriter(longest);
  writer.write(value, 0);
  return writer.text;
}

class PlainWriter {
  readonly #longest: number;
  text = '';

  constructor(longest: number) {
    this.#longest = longest;
  }

  write(value: unknown, depth: number): void {
    if (value === null || typeof value === 'boolean') this.#add(String(value));
    else if (typeof value === 'string' || (typeof value === 'number' && Number.isFinite(value))) this.#scalar(value);
    else if (typeof value !== 'object') throw new WrongShape(`holds a ${typeof value}, which JSON cannot carry`);
    else if (depth === MAX_DEPTH) throw new WrongShape(TOO_LARGE);
    else if (Array.isArray(value)) this.#list(value, depth + 1);
    else if (!isPlain(value)) throw new WrongShape('holds a class instance');
    else this.#members(value, depth + 1);
  }

  #list(items: readonly unknown[], depth: number): void {
    this.#add('[');
    const { length } = items;
    for (let i = 0; i < length; i++) {
      if (i > 0) this.#add(',');
      // As in JSON.stringify: an undefined item of a list is null, and an undefined member of an object is left out.
      const item: unknown = get(items, i);
      this.write(item === undefined ? null : item, depth);
    }
    this.#add(']');
  }

  #members(record: object, depth: number): void {
    let before = '{';
    const keys = keysOf(record);
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i];
      const member: unknown = get(record, key ?? '');
      if (member === undefined) continue;
      this.#add(`${before}${stringify(key)}:`);
      before = ',';
      this.write(member, depth);
    }
    this.#add(before === '{' ? '{}' : '}');
  }

  #scalar(value: string | number): void {
    if (typeof value === 'string' && value.length > this.#longest) throw new TooLong(TOO_LARGE);
    this.#add(stringify(value));
  }

  #add(text: string): void {
    this.text += text;
    if (this.text.length > this.#longest) throw new TooLong(TOO_LARGE);
  }
}
