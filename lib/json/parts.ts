import { MAX_JSON_DEPTH } from './canonical-json.ts';
import {
  endOfDecimal,
  endOfExponent,
  endOfLiteral,
  endOfString,
  JsonLimitError,
  malformed,
  skipSpace,
} from './scan.ts';
import { STEP, type Steps } from './turns.ts';

// As imports they would be read anew at each use, which takes ten times as long.
const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Bytes of JSON text that JSON.parse gets at a time, and up to which a container is read at once. */
const PIECE = 16 * 1024;
const NONE = -1;
const LEVELS = MAX_JSON_DEPTH + 1;
/** Characters from which a number before an exponent of two digits, or an exponent with its letter, may be beyond all doubles. */
const HUGE = 210;
const HUGE_EXPONENT = 4;

/** Some members of a long container, as text; or where there is an `inner` container, which is long itself, its key. */
export interface Part {
  readonly from: number;
  readonly to: number;
  readonly inner?: LongContainer;
}

/** An array or object whose text is too long to be read at once. */
export class LongContainer {
  readonly isArray: boolean;
  readonly parts: readonly Part[];

  constructor(isArray: boolean, parts: readonly Part[]) {
    this.isArray = isArray;
    this.parts = parts;
  }
}

/**
 * Makes sure that bytes are JSON that every reader of this service can handle, and finds the parts in which they can be read.
 *
 * @param bytes well-formed UTF-8
 * @returns nothing for a text that JSON.parse reads quickly
 * @throws SyntaxError; JsonLimitError beyond {@link MAX_JSON_DEPTH} levels, and for a number that is too large for a double. A number that
 * a later member of the same key replaces does not count.
 */
export function* partsOf(bytes: Buffer): Steps<LongContainer | undefined> {
  const partition = new Partition(bytes);
  while (!partition.goOn(STEP)) yield;
  return partition.root;
}

/** Reads the text once. What it knows of the containers that are open stands in lists, by depth. */
class Partition {
  readonly #bytes: Buffer;
  #at = 0;
  #depth = 0;
  /** The bracket that closes it. */
  readonly #closing = new Uint8Array(LEVELS);
  readonly #start = new Int32Array(LEVELS);
  /** Where its last member begins. */
  readonly #member = new Int32Array(LEVELS);
  /** Where the members begin that are in no part yet. */
  readonly #from = new Int32Array(LEVELS);
  readonly #parts: Part[][] = [];
  /** Keys (of arrays, nothing) of the members that hold a number beyond all doubles; nothing as long as none was read. */
  #infinite: (Set<string> | undefined)[] | undefined;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get root(): LongContainer | undefined {
    return this.#parts[0]?.[0]?.inner;
  }

  /** Reads at least so many bytes. @returns whether the text has ended */
  goOn(length: number): boolean {
    const bytes = this.#bytes;
    let at = this.#at;
    for (const until = at + length; at < until; ) {
      // Called where there is no space, too, skipSpace would take half of the time.
      if ((bytes[at] ?? 0) <= SPACE) at = skipSpace(bytes, at);
      const byte = bytes[at] ?? 0;
      if (byte === QUOTE) at = endOfString(bytes, at);
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        // In ASCII each bracket is two before the one that closes it.
        const closing = byte + 2;
        this.#open(at, closing);
        at = skipSpace(bytes, at + 1);
        if (bytes[at] !== closing) {
          if (closing === CLOSE_BRACE) at = this.#endOfKey(at);
          continue;
        }
      } else if (byte <= NINE && byte >= MINUS) at = this.#endOfNumber(at);
      else at = endOfLiteral(bytes, at);
      at = this.#behindValue(at);
      if (this.#depth === 0) return this.#end(at);
    }
    this.#at = at;
    return false;
  }

  #end(at: number): true {
    if (skipSpace(this.#bytes, at) < this.#bytes.length) throw malformed();
    if ((this.#infinite?.[0]?.size ?? 0) > 0) throw new JsonLimitError('a number is too large for standard JSON');
    return true;
  }

  #open(at: number, closing: number): void {
    this.#depth += 1;
    const depth = this.#depth;
    if (depth === LEVELS) throw new JsonLimitError(`nested deeper than ${MAX_JSON_DEPTH} levels`);
    this.#closing[depth] = closing;
    this.#start[depth] = at;
    this.#member[depth] = at + 1;
    this.#from[depth] = at + 1;
  }

  /** Closes the containers that end behind a value. @returns where the next value begins, if there is one */
  #behindValue(from: number): number {
    const bytes = this.#bytes;
    let at = from;
    while (this.#depth > 0) {
      const depth = this.#depth;
      if ((bytes[at] ?? 0) <= SPACE) at = skipSpace(bytes, at);
      const byte = bytes[at];
      at += 1;
      const closing = this.#closing[depth] ?? 0;
      if (byte === COMMA) {
        if (at - (this.#from[depth] ?? 0) > PIECE) this.#cut(depth, at);
        this.#member[depth] = at;
        return closing === CLOSE_BRACE ? this.#endOfKey(at) : at;
      }
      if (byte !== closing) throw malformed();
      if (at - (this.#start[depth] ?? 0) > PIECE) this.#closeLong(depth, at);
      if (this.#infinite !== undefined) this.#closeInfinite(this.#infinite, depth);
      this.#depth = depth - 1;
    }
    return at;
  }

  /** A key with its colon. */
  #endOfKey(from: number): number {
    const bytes = this.#bytes;
    const at = (bytes[from] ?? 0) <= SPACE ? skipSpace(bytes, from) : from;
    if (bytes[at] !== QUOTE) throw malformed();
    const end = endOfString(bytes, at);
    // The last member of a key counts.
    if (this.#infinite !== undefined) this.#infinite[this.#depth]?.delete(keyOf(bytes, at, end));
    const colon = bytes[end] === COLON ? end : skipSpace(bytes, end);
    if (bytes[colon] !== COLON) throw malformed();
    return colon + 1;
  }

  /** Puts the members that are in no part yet into one. @param to behind the comma or bracket that follows them */
  #cut(depth: number, to: number): void {
    const from = this.#from[depth] ?? 0;
    if (from !== NONE && to - 1 > from) this.#partsAt(depth).push({ from, to: to - 1 });
    this.#from[depth] = to;
  }

  #closeLong(depth: number, end: number): void {
    this.#cut(depth, end);
    const inner = new LongContainer(!this.#isObject(depth), this.#partsAt(depth));
    this.#parts[depth] = [];
    const outer = depth - 1;
    const from = this.#member[outer] ?? 0;
    this.#cut(outer, from);
    this.#partsAt(outer).push({ from, to: this.#keyEnd(outer), inner });
    this.#from[outer] = NONE;
  }

  #partsAt(depth: number): Part[] {
    const parts = this.#parts[depth] ?? [];
    this.#parts[depth] = parts;
    return parts;
  }

  #isObject(depth: number): boolean {
    return this.#closing[depth] === CLOSE_BRACE;
  }

  /** Where the key of the last member ends. */
  #keyEnd(depth: number): number {
    const from = this.#member[depth] ?? 0;
    return this.#isObject(depth) ? endOfString(this.#bytes, skipSpace(this.#bytes, from)) : from;
  }

  #endOfNumber(from: number): number {
    const bytes = this.#bytes;
    const power = endOfDecimal(bytes, from);
    const end = endOfExponent(bytes, power);
    const mayBeHuge = power - from >= HUGE || (end - power >= HUGE_EXPONENT && bytes[power + 1] !== MINUS);
    if (mayBeHuge && !Number.isFinite(Number(bytes.toString('latin1', from, end)))) this.#markInfinite(this.#depth);
    return end;
  }

  #markInfinite(depth: number): void {
    this.#infinite ??= [];
    const keys = this.#infinite[depth] ?? new Set();
    this.#infinite[depth] = keys;
    keys.add(this.#isObject(depth) ? keyOf(this.#bytes, this.#member[depth] ?? 0, this.#keyEnd(depth)) : '');
  }

  #closeInfinite(infinite: (Set<string> | undefined)[], depth: number): void {
    const counts = (infinite[depth]?.size ?? 0) > 0;
    infinite[depth] = undefined;
    if (counts) this.#markInfinite(depth - 1);
  }
}

/** What a key stands for. */
export function keyOf(bytes: Buffer, start: number, end: number): string {
  return JSON.parse(bytes.toString('utf8', start, end));
}
