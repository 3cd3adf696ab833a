import { STEP, type Steps } from '../../lib/json/turns.ts';
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

/** Text from another process in place of a value. Nobody has checked yet that it is JSON. */
export class SentJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * The JSON text of a value that is plain JSON through and through. Each member is read once.
 *
 * @param longest characters of the text
 * @throws WrongShape on anything that JSON cannot carry unchanged: functions, NaN, class instances, cycles; and whatever
 * reading the value throws.
 */
export function plainText(value: unknown, longest = MAX_SIZE): Steps<string> {
  return new PlainWriter(longest).write(value);
}

/** A list or object that is being written. */
interface Open {
  readonly outer: Open | undefined;
  readonly depth: number;
  readonly value: object;
  /** Of objects. */
  readonly keys: readonly string[] | undefined;
  readonly length: number;
  at: number;
  separator: '' | ',';
}

class PlainWriter {
  readonly #longest: number;
  #open: Open | undefined;
  #done = '';
  #text = '';

  constructor(longest: number) {
    this.#longest = longest;
  }

  *write(value: unknown): Steps<string> {
    this.#begin(value);
    for (let open = this.#open; open !== undefined; open = this.#open) {
      this.#next(open);
      if (this.#text.length < STEP) continue;
      this.#done += this.#text;
      this.#text = '';
      yield;
    }
    return this.#done + this.#text;
  }

  #begin(value: unknown): void {
    if (value === null || typeof value === 'boolean') this.#add(String(value));
    else if (typeof value === 'string' || (typeof value === 'number' && Number.isFinite(value))) this.#scalar(value);
    else if (typeof value !== 'object') throw new WrongShape(`holds a ${typeof value}, which JSON cannot carry`);
    else if (Array.isArray(value)) this.#enter(value, undefined);
    else if (!isPlain(value)) throw new WrongShape('holds a class instance');
    else this.#enter(value, keysOf(value));
  }

  #enter(value: object, keys: readonly string[] | undefined): void {
    const depth = (this.#open?.depth ?? 0) + 1;
    if (depth > MAX_DEPTH) throw new WrongShape(TOO_LARGE);
    const { length } = keys ?? (value as readonly unknown[]);
    this.#add(keys === undefined ? '[' : '{');
    this.#open = { outer: this.#open, depth, value, keys, length, at: 0, separator: '' };
  }

  /** Writes the next member, or the end. */
  #next(open: Open): void {
    const { value, keys, at } = open;
    if (at === open.length) {
      this.#open = open.outer;
      this.#add(keys === undefined ? ']' : '}');
      return;
    }
    open.at += 1;
    const key = keys?.[at];
    // As in JSON.stringify: an undefined item of a list is null, and an undefined member of an object is left out.
    const given: unknown = get(value, key ?? at);
    const member = given === undefined && key === undefined ? null : given;
    if (member === undefined) return;
    this.#add(key === undefined ? open.separator : `${open.separator}${stringify(key)}:`);
    open.separator = ',';
    this.#begin(member);
  }

  #scalar(value: string | number): void {
    if (typeof value === 'string' && value.length > this.#longest) throw new TooLong(TOO_LARGE);
    this.#add(stringify(value));
  }

  #add(text: string): void {
    this.#text += text;
    if (this.#done.length + this.#text.length > this.#longest) throw new TooLong(TOO_LARGE);
  }
}
