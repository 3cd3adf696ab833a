import { MAX_JSON_DEPTH } from '../canonical-json.ts';
import { compareUtf8, KeysInBytes, KeysInText, orderOf } from './key-order.ts';
import { JsonScanner } from './scan.ts';
import { STEP, type Steps } from './turns.ts';

const COMMA = 0x2c;
const COLON = 0x3a;

/** Below so many bytes a loop copies more quickly than a call. */
const SHORT = 48;

/** An array or object whose end has not been read. */
interface Frame {
  /** Where its members begin in what has been written. */
  readonly start: number;
  /** The index of its first key among the bounds of keys. */
  readonly firstKey: number;
  /** Whether the keys came in their order, each once. */
  isOrdered: boolean;
  /** Whether some key has an escape, whose bytes are not in the order of what it stands for. */
  hasEscapes: boolean;
}

/**
 * The canonical form of JSON text in UTF-8 (RFC 8785, with lone surrogates as escapes), made without a value of it: what
 * `canonicalJson` writes of the value that JSON.parse makes, in a part of the time.
 *
 * @param json valid JSON of at most 1 MiB without numbers beyond doubles, nested no deeper than {@link MAX_JSON_DEPTH}
 */
export function canonicalize(json: Buffer): Steps<Buffer> {
  return new Canonicalizer(json).run();
}

class Canonicalizer {
  readonly #json: Buffer;
  readonly #scanner: JsonScanner;
  readonly #frames: Frame[] = [];
  /** Where the keys of open objects begin and end in what has been written, without their quotes. */
  readonly #bounds: number[] = [];
  #frame: Frame = { start: 0, firstKey: 0, isOrdered: true, hasEscapes: false };
  #out: Buffer;
  #length = 0;
  /** The members of the object that is put in order. */
  #scratch: Buffer = Buffer.alloc(0);

  constructor(json: Buffer) {
    this.#json = json;
    this.#scanner = new JsonScanner(json, MAX_JSON_DEPTH);
    this.#out = Buffer.allocUnsafe(json.length);
  }

  *run(): Steps<Buffer> {
    const scanner = this.#scanner;
    for (let rest = STEP; ; ) {
      const { inObject } = scanner;
      const token = scanner.next();
      const { start, end } = scanner;
      if (token === 'end') return this.#out.subarray(0, this.#length);
      if (token === 'close') {
        if (!this.#frame.isOrdered) yield* this.#putInOrder(this.#frame);
        this.#append(this.#json, start, end);
        this.#close(this.#frame);
      } else {
        if ((token === 'key' || !inObject) && this.#length > this.#frame.start) this.#byte(COMMA);
        if (token === 'key') this.#key(this.#frame);
        else if (token === 'string') this.#string();
        else if (token === 'number' && !scanner.isPlain)
          this.#text(String(Number(this.#json.toString('latin1', start, end))));
        else this.#append(this.#json, start, end);
        if (token === 'array' || token === 'object') this.#open();
      }
      if (end < rest) continue;
      rest = end + STEP;
      yield;
    }
  }

  #open(): void {
    this.#frames.push(this.#frame);
    this.#frame = { start: this.#length, firstKey: this.#bounds.length, isOrdered: true, hasEscapes: false };
  }

  #close({ firstKey }: Frame): void {
    this.#bounds.length = firstKey;
    this.#frame = this.#frames.pop() ?? this.#frame;
  }

  #key(frame: Frame): void {
    const bounds = this.#bounds;
    const start = this.#length + 1;
    if (!this.#string()) frame.hasEscapes = true;
    const end = this.#length - 1;
    if (frame.hasEscapes) frame.isOrdered = false;
    if (frame.isOrdered && bounds.length > frame.firstKey) {
      const [before = 0, beforeEnd = 0] = [bounds.at(-2), bounds.at(-1)];
      frame.isOrdered = compareUtf8(this.#out, before, beforeEnd, start, end) < 0;
    }
    bounds.push(start, end);
    this.#byte(COLON);
  }

  /** Writes the string or key that was just read, and tells whether it got by without escapes. */
  #string(): boolean {
    const { start, end, isPlain, hasEscapes } = this.#scanner;
    if (isPlain) {
      this.#append(this.#json, start, end);
      return !hasEscapes;
    }
    const text = JSON.stringify(JSON.parse(this.#json.toString('utf8', start, end)));
    this.#text(text);
    return !text.includes('\\');
  }

  *#putInOrder({ start, firstKey, hasEscapes }: Frame): Steps<void> {
    const bounds = this.#bounds.slice(firstKey);
    const keys = hasEscapes ? new KeysInText(yield* this.#textsOf(bounds)) : new KeysInBytes(this.#out, bounds);
    const order = yield* orderOf(keys);
    const end = this.#length;
    if (this.#scratch.length < end - start) this.#scratch = Buffer.allocUnsafe(2 * (end - start));
    this.#out.copy(this.#scratch, 0, start, end);
    this.#length = start;
    for (const member of order) {
      if (this.#length > start) this.#byte(COMMA);
      const from = (bounds[2 * member] ?? 0) - 1;
      // Between two members there are a comma and a quote.
      const to = (bounds[2 * member + 2] ?? end + 2) - 2;
      this.#append(this.#scratch, from - start, to - start);
    }
  }

  *#textsOf(bounds: readonly number[]): Steps<string[]> {
    const keys: string[] = [];
    for (let i = 0; i < bounds.length; i += 2) {
      const text = this.#out.toString('utf8', bounds[i], bounds[i + 1]);
      keys.push(text.includes('\\') ? JSON.parse(`"${text}"`) : text);
      if (i % STEP === STEP - 2) yield;
    }
    return keys;
  }

  #byte(byte: number): void {
    this.#reserve(1);
    this.#out[this.#length++] = byte;
  }

  #text(text: string): void {
    this.#reserve(Buffer.byteLength(text));
    this.#length += this.#out.write(text, this.#length);
  }

  #append(source: Buffer, start: number, end: number): void {
    this.#reserve(end - start);
    const out = this.#out;
    let at = this.#length;
    if (end - start > SHORT) source.copy(out, at, start, end);
    else for (let from = start; from < end; from++) out[at++] = source[from] ?? 0;
    this.#length += end - start;
  }

  #reserve(bytes: number): void {
    const size = this.#length + bytes;
    if (size <= this.#out.length) return;
    const larger = Buffer.allocUnsafe(2 * size);
    this.#out.copy(larger, 0, 0, this.#length);
    this.#out = larger;
  }
}
