import { endOfContainers } from './skip.ts';

/** The parts that JSON text is made of; colons, commas and white space are checked and not told. */
export type Token = 'end' | 'array' | 'object' | 'close' | 'key' | 'string' | 'number' | 'literal';

// As imports they would be read anew at each use, which takes ten times as long.
const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
/** In lower case. */
const LETTER_E = 0x65;
const LOWER_CASE = 0x20;

/** Digits from which a number may be beyond all doubles. */
const HUGE = 309;
const ESCAPABLE = new Set(Buffer.from('"\\/bfnrt'));
const LITERALS = new Map(['true', 'false', 'null'].map((word) => [word.charCodeAt(0), Buffer.from(word)]));

/** The text is JSON, and beyond what its reader can handle; the message says how. */
export class JsonLimitError extends Error {
  override readonly name = 'JsonLimitError';
}

/**
 * Reads JSON text (RFC 8259) in UTF-8 token by token, without making a value of any. It stands between two tokens as long
 * as its reader likes, which is what lets a reader give other work a turn.
 */
export class JsonScanner {
  /** Where the last token begins and ends. */
  start = 0;
  end = 0;
  /** Of a string or key. */
  hasEscapes = false;
  /** Whether a number may be too large for a double. */
  mayBeHuge = false;
  /** Of the arrays and objects that are open. */
  depth = 0;
  readonly #bytes: Uint8Array;
  /** For each depth the bracket that closes what is open there. */
  readonly #closing: Uint8Array;
  #at = 0;
  #expects: 'value' | 'member' | 'separator' = 'value';

  /** @param bytes well-formed UTF-8 */
  constructor(bytes: Uint8Array, maxDepth: number) {
    this.#bytes = bytes;
    this.#closing = new Uint8Array(maxDepth + 1);
  }

  /** Whether the innermost open container is an object. */
  get inObject(): boolean {
    return this.#closing[this.depth] === CLOSE_BRACE;
  }

  /** @throws SyntaxError where the text is no JSON; JsonLimitError */
  next(): Token {
    let at = this.#skipSpace(this.#at);
    const closing = this.#closing[this.depth];
    if (this.#expects !== 'value') {
      if (this.depth === 0) return this.#finish(at);
      if (this.#bytes[at] === closing) return this.#close(at);
      if (this.#expects === 'separator') {
        if (this.#bytes[at] !== COMMA) throw malformed();
        at = this.#skipSpace(at + 1);
      }
      if (closing === CLOSE_BRACE) return this.#key(at);
    }
    return this.#value(at);
  }

  /** Behind an `array` or `object`: goes on to the `close` that belongs to it, at any depth and without checking what lies between. */
  skip(): void {
    this.depth -= 1;
    const end = endOfContainers(this.#bytes, this.end, 1) ?? this.end;
    this.#take(end - 1, end);
  }

  #finish(at: number): 'end' {
    if (at < this.#bytes.length) throw malformed();
    return 'end';
  }

  #close(at: number): 'close' {
    this.depth -= 1;
    this.#take(at, at + 1);
    return 'close';
  }

  #key(at: number): 'key' {
    if (this.#bytes[at] !== QUOTE) throw malformed();
    this.#take(at, this.#endOfString(at));
    const colon = this.#skipSpace(this.end);
    if (this.#bytes[colon] !== COLON) throw malformed();
    this.#at = colon + 1;
    this.#expects = 'value';
    return 'key';
  }

  #value(at: number): Token {
    const first = this.#bytes[at] ?? 0;
    if (first === QUOTE) {
      this.#take(at, this.#endOfString(at));
      return 'string';
    }
    if (first === OPEN_BRACKET || first === OPEN_BRACE) return this.#open(at, first);
    if (first === MINUS || isDigit(first)) {
      this.#take(at, this.#endOfNumber(at));
      return 'number';
    }
    this.#take(at, this.#endOfLiteral(at, first));
    return 'literal';
  }

  #open(at: number, bracket: number): 'array' | 'object' {
    this.depth += 1;
    if (this.depth === this.#closing.length) throw new JsonLimitError(`nested deeper than ${this.depth - 1} levels`);
    this.#take(at, at + 1);
    this.#expects = 'member';
    // In ASCII each bracket is two before the one that closes it.
    this.#closing[this.depth] = bracket + 2;
    return bracket === OPEN_BRACKET ? 'array' : 'object';
  }

  #take(start: number, end: number): void {
    this.start = start;
    this.end = end;
    this.#at = end;
    this.#expects = 'separator';
  }

  #skipSpace(from: number): number {
    let at = from;
    for (let byte = this.#bytes[at]; byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09; ) {
      at += 1;
      byte = this.#bytes[at];
    }
    return at;
  }

  #endOfString(from: number): number {
    const bytes = this.#bytes;
    this.hasEscapes = false;
    for (let at = from + 1; ; at++) {
      const byte = bytes[at];
      if (byte === QUOTE) return at + 1;
      // Also behind the last byte: control characters must be escaped.
      if (byte === undefined || byte < 0x20) throw malformed();
      if (byte !== BACKSLASH) continue;
      this.hasEscapes = true;
      at = this.#endOfEscape(at + 1);
    }
  }

  /** The position of its last character. */
  #endOfEscape(at: number): number {
    const kind = this.#bytes[at] ?? 0;
    if (kind === LETTER_U) {
      for (let digit = at + 1; digit <= at + 4; digit++) if (!isHexDigit(this.#bytes[digit] ?? 0)) throw malformed();
      return at + 4;
    }
    if (!ESCAPABLE.has(kind)) throw malformed();
    return at;
  }

  #endOfNumber(from: number): number {
    const bytes = this.#bytes;
    const whole = bytes[from] === MINUS ? from + 1 : from;
    let at = bytes[whole] === ZERO ? whole + 1 : this.#endOfDigits(whole);
    if (bytes[at] === POINT) at = this.#endOfDigits(at + 1);
    this.mayBeHuge = at - whole >= HUGE;
    if (((bytes[at] ?? 0) | LOWER_CASE) !== LETTER_E) return at;
    const sign = bytes[at + 1];
    const power = at + (sign === PLUS || sign === MINUS ? 2 : 1);
    at = this.#endOfDigits(power);
    this.mayBeHuge ||= at - power > 2;
    return at;
  }

  #endOfDigits(from: number): number {
    let at = from;
    while (isDigit(this.#bytes[at] ?? 0)) at += 1;
    if (at === from) throw malformed();
    return at;
  }

  #endOfLiteral(from: number, first: number): number {
    const word = LITERALS.get(first);
    if (word === undefined) throw malformed();
    const end = from + word.length;
    for (let at = from + 1; at < end; at++) if (this.#bytes[at] !== word[at - from]) throw malformed();
    return end;
  }
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= NINE;
}

function isHexDigit(byte: number): boolean {
  const lower = byte | LOWER_CASE;
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x66);
}

function malformed(): SyntaxError {
  return new SyntaxError('the text is no JSON');
}
