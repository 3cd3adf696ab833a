const SPACE = 0x20;
const PERCENT = 0x25;
const DIGIT_ZERO = 0x30;
const LETTER_A = 0x61;
const LETTER_U = 0x75;
const DELETE = 0x7f;

const DOT_SEGMENT = /(?:^|[/\\])\.\.?(?:;[^/\\]*)?(?:[/\\]|$)/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: what URL parsers and servers leave out
const INVISIBLE = /[\u0000-\u0020\u007f]+/g;

/** The first two bytes of an over-long UTF-8 sequence, and the one byte that begins the same sequence one byte shorter. */
const SHORTER: ReadonlyMap<number, number> = new Map([
  [0xfc80, 0xf8],
  [0xf880, 0xf0],
  [0xf080, 0xe0],
  [0xe080, 0xc0],
  [0xe081, 0xc1],
]);

/**
 * Whether a part of a path holds a segment `.` or `..` (RFC 3986, section 5.2.4) after it was decoded until nothing changes.
 * It reads the path as the laxest server would. Both slashes separate segments, text after a `;` is ignored, over-long UTF-8
 * and `%u002e` are decoded, white space and control characters are dropped. The time is linear in the length of the text.
 */
export function hasDotSegment(text: string): boolean {
  if (!/[.%]/.test(text)) return false;
  return DOT_SEGMENT.test(text.includes('%') ? fullyDecoded(text) : text.replace(INVISIBLE, ''));
}

/** Decodes a text until nothing is left to decode. @returns its UTF-8, with a character for each byte. */
function fullyDecoded(text: string): string {
  // Decoding never makes a text longer.
  const bytes = Buffer.from(text);
  let end = 0;
  for (let at = 0; at < bytes.length; at++) end = append(bytes, end, bytes[at] ?? 0);
  return bytes.toString('latin1', 0, end);
}

/**
 * Appends a byte. A sequence that it completes is replaced by its decoded byte, which may complete another.
 * @returns the new end
 */
function append(bytes: Buffer, end: number, byte: number): number {
  let size = end;
  for (let next = byte; next > SPACE && next !== DELETE; ) {
    bytes[size++] = next;
    const code = codeAt(bytes, size);
    if (code === 0) return size;
    size -= code >> 8;
    next = code & 0xff;
  }
  return size;
}

/** Decodes the sequence that ends at `end`. @returns its byte, plus 256 for each byte of the sequence; 0 if there is none. */
function codeAt(bytes: Buffer, end: number): number {
  const last = bytes[end - 1] ?? 0;
  const previous = bytes[end - 2] ?? 0;
  if (last >> 6 === 0b10) {
    if (previous === 0xc0 || previous === 0xc1) return (2 << 8) | ((previous & 1) << 6) | (last & 0x3f);
    const shorter = SHORTER.get((previous << 8) | last);
    return shorter === undefined ? 0 : (2 << 8) | shorter;
  }
  const length = bytes[end - 3] === PERCENT ? 3 : isWide(bytes, end) ? 6 : 0;
  const high = length === 0 ? -1 : hexDigit(previous);
  const low = high < 0 ? -1 : hexDigit(last);
  return low < 0 ? 0 : (length << 8) | (high << 4) | low;
}

/** Whether `%u00` precedes the last two bytes, as in the encoding of JavaScript's `escape`. */
function isWide(bytes: Buffer, end: number): boolean {
  if (bytes[end - 6] !== PERCENT || bytes[end - 5] !== LETTER_U) return false;
  return bytes[end - 4] === DIGIT_ZERO && bytes[end - 3] === DIGIT_ZERO;
}

function hexDigit(byte: number): number {
  if (byte >= DIGIT_ZERO && byte < DIGIT_ZERO + 10) return byte - DIGIT_ZERO;
  const letter = byte | 0x20;
  return letter >= LETTER_A && letter < LETTER_A + 6 ? letter - LETTER_A + 10 : -1;
}
