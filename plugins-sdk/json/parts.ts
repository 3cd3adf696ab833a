import { MAX_JSON_DEPTH } from '../canonical-json.ts';
import { JsonLimitError, JsonScanner } from './scan.ts';
import { STEP, type Steps } from './turns.ts';

/** Bytes of JSON text that JSON.parse gets at a time, and up to which a container is read at once. */
const PIECE = 16 * 1024;
const NONE = -1;

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

/** A container whose end has not been read. */
class Open {
  start = 0;
  isArray = false;
  /** Where the members begin that are in no part yet. */
  from = NONE;
  /** The last member: where it and its value begin, and where the one before it ends. */
  member = 0;
  keyEnd = 0;
  endBefore = 0;
  parts: Part[] = [];
  /** Keys (of arrays, nothing) of the members that hold a number beyond all doubles. */
  infinite: Set<string> | undefined;
}

/**
 * Makes sure that bytes are JSON that every reader of this service can handle, and finds the parts in which they can be read.
 *
 * @param bytes well-formed UTF-8
 * @returns nothing for a text that JSON.parse reads quickly
 * @throws SyntaxError; JsonLimitError beyond {@link MAX_JSON_DEPTH} levels and for a number that is too large for a double,
 * unless a later member of the same key takes its place
 */
export function partsOf(bytes: Buffer): Steps<LongContainer | undefined> {
  return new Partition(bytes).run();
}

class Partition {
  readonly #bytes: Buffer;
  readonly #scanner: JsonScanner;
  readonly #open: Open[] = [new Open()];
  #root: LongContainer | undefined;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#scanner = new JsonScanner(bytes, MAX_JSON_DEPTH);
  }

  *run(): Steps<LongContainer | undefined> {
    const scanner = this.#scanner;
    for (let rest = STEP; ; ) {
      const { end: endBefore, depth, inObject } = scanner;
      const token = scanner.next();
      if (token === 'end') return this.#end();
      const { start, end } = scanner;
      if (token === 'close') this.#close(depth, endBefore, end);
      else {
        if (token === 'key' || !inObject) this.#begin(depth, endBefore, token === 'key');
        if (token === 'array' || token === 'object') this.#enter(start, token === 'array');
        else if (token === 'number' && scanner.mayBeHuge) this.#number(depth);
      }
      if (end < rest) continue;
      rest = end + STEP;
      yield;
    }
  }

  #end(): LongContainer | undefined {
    if ((this.#at(0).infinite?.size ?? 0) > 0) throw new JsonLimitError('a number is too large for standard JSON');
    return this.#root;
  }

  #begin(depth: number, endBefore: number, isKey: boolean): void {
    const { start, end } = this.#scanner;
    const open = this.#at(depth);
    if (open.from === NONE) open.from = start;
    else if (start - open.from >= PIECE) {
      open.parts.push({ from: open.from, to: endBefore });
      open.from = start;
    }
    open.member = start;
    open.keyEnd = isKey ? end : start;
    open.endBefore = endBefore;
    // The last member of a key counts.
    if (isKey) open.infinite?.delete(keyOf(this.#bytes, start, end));
  }

  #enter(start: number, isArray: boolean): void {
    const { depth } = this.#scanner;
    const open = this.#at(depth);
    open.start = start;
    open.isArray = isArray;
    open.from = NONE;
    open.infinite = undefined;
    if (open.parts.length > 0) open.parts = [];
  }

  #close(depth: number, endBefore: number, end: number): void {
    const { start, isArray, from, parts, infinite } = this.#at(depth);
    const outer = this.#at(depth - 1);
    if (infinite !== undefined && infinite.size > 0) this.#mark(outer);
    if (end - start <= PIECE) return;
    if (from !== NONE) parts.push({ from, to: endBefore });
    const inner = new LongContainer(isArray, parts);
    if (depth === 1) this.#root = inner;
    if (outer.from < outer.member) outer.parts.push({ from: outer.from, to: outer.endBefore });
    outer.parts.push({ from: outer.member, to: outer.keyEnd, inner });
    outer.from = NONE;
  }

  #number(depth: number): void {
    const { start, end } = this.#scanner;
    if (!Number.isFinite(Number(this.#bytes.toString('latin1', start, end)))) this.#mark(this.#at(depth));
  }

  #mark(open: Open): void {
    open.infinite ??= new Set();
    open.infinite.add(open.keyEnd > open.member ? keyOf(this.#bytes, open.member, open.keyEnd) : '');
  }

  #at(depth: number): Open {
    let open = this.#open[depth];
    if (open === undefined) {
      open = new Open();
      this.#open[depth] = open;
    }
    return open;
  }
}

/** What a key stands for. */
export function keyOf(bytes: Buffer, start: number, end: number): string {
  return JSON.parse(bytes.toString('utf8', start, end));
}
