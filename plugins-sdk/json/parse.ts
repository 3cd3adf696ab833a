import { MAX_JSON_DEPTH } from '../canonical-json.ts';
import type { Json } from '../kernel.ts';
import { JsonLimitError, JsonScanner, type Token } from './scan.ts';
import { STEP, type Steps } from './turns.ts';

/** Bytes that JSON.parse gets at a time. */
const PIECE = 16 * 1024;
const NONE = -1;

type Container = Json[] | { [key: string]: Json };

/** What one reading of JSON text tells: where the arrays and objects begin that are longer than a piece. */
export type LongContainers = ReadonlySet<number>;

/**
 * Makes sure that bytes are JSON that every reader of this service can handle.
 *
 * @param bytes well-formed UTF-8
 * @throws SyntaxError; JsonLimitError beyond {@link MAX_JSON_DEPTH} levels and for a number that is too large for a double
 */
export function* validate(bytes: Buffer): Steps<LongContainers> {
  const scanner = new JsonScanner(bytes, MAX_JSON_DEPTH);
  const long = new Set<number>();
  const opened: number[] = [];
  for (let rest = STEP; ; ) {
    const token = scanner.next();
    const { start, end } = scanner;
    if (token === 'end') return long;
    if (token === 'array' || token === 'object') opened.push(start);
    else if (token === 'close') {
      const open = opened.pop() ?? 0;
      if (end - open > PIECE) long.add(open);
    } else if (
      token === 'number' &&
      scanner.mayBeHuge &&
      !Number.isFinite(Number(bytes.toString('latin1', start, end)))
    ) {
      throw new JsonLimitError('a number is too large for standard JSON');
    }
    if (end < rest) continue;
    rest = end + STEP;
    yield;
  }
}

/**
 * The value that JSON.parse makes of the text, for texts of which it could hold the event loop for too long (a mebibyte of
 * short keys takes it over 50 ms): long arrays and objects are parsed piece by piece.
 *
 * @param bytes valid JSON
 * @param long what {@link validate} said of it
 */
export function parse(bytes: Buffer, long: LongContainers): Steps<Json> {
  return new Parser(bytes, long).parse();
}

class Parser {
  readonly #bytes: Buffer;
  readonly #long: LongContainers;
  readonly #scanner: JsonScanner;
  #unyielded = 0;

  constructor(bytes: Buffer, long: LongContainers) {
    this.#bytes = bytes;
    this.#long = long;
    this.#scanner = new JsonScanner(bytes, MAX_JSON_DEPTH);
  }

  *parse(): Steps<Json> {
    const token = this.#scanner.next();
    return this.#long.has(this.#scanner.start) ? yield* this.#container(token) : JSON.parse(this.#bytes.toString());
  }

  /** Reads on from the bracket that opens a long array or object to the one that closes it. */
  *#container(kind: Token): Steps<Container> {
    const scanner = this.#scanner;
    const { depth } = scanner;
    const container: Container = kind === 'array' ? [] : {};
    // The first member that has not been taken, and the last that was begun.
    let from = NONE;
    let member = { start: 0, keyEnd: 0, endBefore: 0 };
    for (let end = 0; ; end = scanner.end) {
      const token = scanner.next();
      const { start } = scanner;
      if (token === 'close') {
        if (scanner.depth >= depth) continue;
        if (from !== NONE) yield* this.#take(container, from, end);
        return container;
      }
      const opens = token === 'array' || token === 'object';
      if (scanner.depth > (opens ? depth + 1 : depth)) continue;
      if (token === 'key' || kind === 'array') {
        if (from !== NONE && start - from >= PIECE) {
          yield* this.#take(container, from, end);
          from = NONE;
        }
        if (from === NONE) from = start;
        member = { start, keyEnd: scanner.end, endBefore: end };
      }
      if (!opens || !this.#long.has(start)) continue;
      if (from < member.start) yield* this.#take(container, from, member.endBefore);
      const key = kind === 'array' ? '' : JSON.parse(this.#bytes.toString('utf8', member.start, member.keyEnd));
      insert(container, key, yield* this.#container(token));
      from = NONE;
    }
  }

  /** Adds the members between two positions. */
  *#take(container: Container, from: number, to: number): Steps<void> {
    this.#unyielded += to - from;
    if (this.#unyielded >= STEP) {
      this.#unyielded = 0;
      yield;
    }
    const members = this.#bytes.toString('utf8', from, to);
    if (Array.isArray(container)) {
      const items: Json[] = JSON.parse(`[${members}]`);
      for (const item of items) container.push(item);
    } else {
      const entries: Record<string, Json> = JSON.parse(`{${members}}`);
      for (const key of Object.keys(entries)) insert(container, key, entries[key] ?? null);
    }
  }
}

function insert(container: Container, key: string, value: Json): void {
  if (Array.isArray(container)) container.push(value);
  // Assigned, it would set the prototype.
  else if (key === '__proto__') Object.defineProperty(container, key, { ...OWN, value });
  else container[key] = value;
}

const OWN = { configurable: true, enumerable: true, writable: true };
