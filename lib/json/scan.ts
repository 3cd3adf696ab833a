// As imports they would be read anew at each use, which takes ten times as long.
const QUOTE = 0x22;
const PLUS = 0x2b;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
/** In lower case. */
const LETTER_E = 0x65;
const LOWER_CASE = 0x20;

const ESCAPABLE = new Set(Buffer.from('"\\/bfnrt'));
const LITERALS = new Map(['true', 'false', 'null'].map((word) => [word.charCodeAt(0), Buffer.from(word)]));

/** The text is JSON, and beyond what its reader can handle; the message says how. */
export class JsonLimitError extends Error {
  override readonly name = 'JsonLimitError';
}

export function malformed(): SyntaxError {
  return new SyntaxError('the text is no JSON');
}

// Each function gets JSON text (RFC 8259) in well-formed UTF-8 and a position in it, and returns the position behind what
// its name says. What begins there is checked: a SyntaxError is thrown where it is no such thing.

export function skipSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  for (let byte = bytes[at]; byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09; ) {
    at += 1;
    byte = bytes[at];
  }
  return at;
}

/** @param from where its first quote is */
export function endOfString(bytes: Uint8Array, from: number): number {
  for (let at = from + 1; ; ) {
    // Behind the last byte as if it were one: control characters must be escaped.
    const byte = bytes[at] ?? 0;
    at += 1;
    // Most bytes are small letters, which are decided on at once.
    if (byte > BACKSLASH) continue;
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at = endOfEscape(bytes, at);
    else if (byte < 0x20) throw malformed();
  }
}

/** @param from where the character behind the backslash is */
function endOfEscape(bytes: Uint8Array, from: number): number {
  const kind = bytes[from] ?? 0;
  if (kind === LETTER_U) {
    const end = from + 5;
    for (let at = from + 1; at < end; at++) if (!isHexDigit(bytes[at] ?? 0)) throw malformed();
    return end;
  }
  if (!ESCAPABLE.has(kind)) throw malformed();
  return from + 1;
}

function isHexDigit(byte: number): boolean {
  const lower = byte | LOWER_CASE;
  return (byte >= ZERO && byte <= NINE) || (lower >= 0x61 && lower <= 0x66);
}

/** A number without its exponent. */
export function endOfDecimal(bytes: Uint8Array, from: number): number {
  const whole = bytes[from] === MINUS ? from + 1 : from;
  const end = bytes[whole] === ZERO ? whole + 1 : endOfDigits(bytes, whole);
  return bytes[end] === POINT ? endOfDigits(bytes, end + 1) : end;
}

/** The exponent of a number, or nothing. */
export function endOfExponent(bytes: Uint8Array, from: number): number {
  if (((bytes[from] ?? 0) | LOWER_CASE) !== LETTER_E) return from;
  const sign = bytes[from + 1];
  return endOfDigits(bytes, from + (sign === PLUS || sign === MINUS ? 2 : 1));
}

function endOfDigits(bytes: Uint8Array, from: number): number {
  let at = from;
  for (let byte = bytes[at] ?? 0; byte <= NINE && byte >= ZERO; byte = bytes[at] ?? 0) at += 1;
  if (at === from) throw malformed();
  return at;
}

/** `true`, `false` or `null`. */
export function endOfLiteral(bytes: Uint8Array, from: number): number {
  const word = LITERALS.get(bytes[from] ?? 0);
  if (word === undefined) throw malformed();
  const end = from + word.length;
  for (let at = from + 1; at < end; at++) if (bytes[at] !== word[at - from]) throw malformed();
  return end;
}
