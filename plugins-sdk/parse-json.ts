import { setImmediate } from 'node:timers/promises';
import type { Json } from './kernel.ts';

/** Characters that JSON.parse gets at a time. */
const PIECE = 16 * 1024;
/** Characters between two turns of other work: about 5 ms of the text that is worst to parse. */
const STEP = 64 * 1024;

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

const BLANK = /^[ \t\r\n]*$/;

/**
 * The value that JSON.parse makes of the text, for texts of which it could hold the event loop for too long (a mebibyte of
 * short keys takes it over 50 ms): containers longer than a few kilobytes are parsed piece by piece, and other work gets
 * a turn in between.
 *
 * The nesting of the text must be bounded by the caller; see `isDeeperThan`.
 * @throws SyntaxError for what JSON.parse refuses.
 */
export async function parseJsonInSteps(text: string): Promise<Json> {
  const steps = new Parser(text).parse();
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    await setImmediate();
  }
}

type Steps<T> = Generator<void, T>;
type Container = Json[] | { [key: string]: Json };

class Parser {
  readonly #text: string;
  /** Where long containers end, by where they begin. */
  readonly #ends: ReadonlyMap<number, number>;
  #unyielded = 0;

  constructor(text: string) {
    this.#text = text;
    this.#ends = longContainers(text);
  }

  *parse(): Steps<Json> {
    const start = this.#text.search(/[^ \t\r\n]/);
    const end = this.#ends.get(start);
    if (end === undefined) return JSON.parse(this.#text);
    if (!BLANK.test(this.#text.slice(end + 1))) throw malformed();
    return yield* this.#container(start, end);
  }

  *#container(open: number, close: number): Steps<Container> {
    const text = this.#text;
    const container: Container = text.charCodeAt(open) === OPEN_BRACKET ? [] : {};
    // A piece is a run of whole members; the member that the position is in begins behind the last comma.
    let piece = open + 1;
    let member = piece;
    let at = piece;
    while (at < close) {
      const end = this.#ends.get(at);
      if (end !== undefined) {
        if (member > piece) yield* this.#take(container, piece, member - 1);
        insert(container, this.#key(container, member, at), yield* this.#container(at, end));
        at = this.#behindMember(end + 1, close);
        piece = at + 1;
      } else if (text.charCodeAt(at) !== COMMA) {
        at = endOfToken(text, at);
        continue;
      } else if (at - piece >= PIECE) {
        yield* this.#take(container, piece, at);
        piece = at + 1;
      }
      at += 1;
      member = at;
    }
    const isEmpty = piece === open + 1 && BLANK.test(text.slice(piece, close));
    if (piece <= close && !isEmpty) yield* this.#take(container, piece, close);
    return container;
  }

  /** Adds the members between two positions. */
  *#take(container: Container, from: number, to: number): Steps<void> {
    this.#unyielded += to - from;
    if (this.#unyielded >= STEP) {
      this.#unyielded = 0;
      yield;
    }
    const members = this.#text.slice(from, to);
    const count = Array.isArray(container) ? takeItems(container, members) : takeEntries(container, members);
    // Nothing between two commas.
    if (count === 0) throw malformed();
  }

  /** The key of the long member that lies between two positions, of which the second is that of its value. */
  #key(container: Container, from: number, to: number): string {
    const before = this.#text.slice(from, to);
    if (Array.isArray(container)) {
      if (BLANK.test(before)) return '';
    } else {
      const colon = before.lastIndexOf(':');
      const key: unknown = JSON.parse(before.slice(0, Math.max(colon, 0)));
      if (typeof key === 'string' && BLANK.test(before.slice(colon + 1))) return key;
    }
    throw malformed();
  }

  /** The position of the comma behind a member, or of its container's end. */
  #behindMember(from: number, close: number): number {
    let at = from;
    while (at < close && this.#text.charCodeAt(at) !== COMMA) at++;
    if (!BLANK.test(this.#text.slice(from, at))) throw malformed();
    return at;
  }
}

function takeItems(container: Json[], members: string): number {
  const items: Json[] = JSON.parse(`[${members}]`);
  for (const item of items) container.push(item);
  return items.length;
}

function takeEntries(container: Container, members: string): number {
  const entries: Record<string, Json> = JSON.parse(`{${members}}`);
  const keys = Object.keys(entries);
  for (const key of keys) insert(container, key, entries[key] ?? null);
  return keys.length;
}

function insert(container: Container, key: string, value: Json): void {
  if (Array.isArray(container)) container.push(value);
  // Assigned, it would set the prototype.
  else if (key === '__proto__') Object.defineProperty(container, key, { ...OWN, value });
  else container[key] = value;
}

const OWN = { configurable: true, enumerable: true, writable: true };

/** Also makes sure that strings end, and that brackets come in pairs. */
function longContainers(text: string): Map<number, number> {
  const ends = new Map<number, number>();
  const opened: number[] = [];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at) - 1;
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) opened.push(at);
    else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) {
      const start = opened.pop() ?? -1;
      // In ASCII each bracket is two before the one that closes it.
      if (text.charCodeAt(start) !== code - 2) throw malformed();
      if (at - start > PIECE) ends.set(start, at);
    }
  }
  if (opened.length > 0) throw malformed();
  return ends;
}

/** The position behind the string, short container or single character at `from`. */
function endOfToken(text: string, from: number): number {
  let depth = 0;
  let at = from;
  do {
    const code = text.charCodeAt(at);
    if (code === OPEN_BRACKET || code === OPEN_BRACE) depth += 1;
    else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth -= 1;
    at = code === QUOTE ? endOfString(text, at) : at + 1;
  } while (depth > 0);
  return at;
}

/** The position behind the string that begins at `from`. */
function endOfString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) at += 1;
  }
  throw malformed();
}

function malformed(): SyntaxError {
  return new SyntaxError('the text is no JSON');
}
