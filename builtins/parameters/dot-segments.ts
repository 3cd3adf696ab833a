const SPACE = 0x20;
const PERCENT = 0x25;
const DIGIT_ZERO = 0x30;
const LETTER_U = 0x75;
const DELETE = 0x7f;

/** The first two bytes of an over-long UTF-8 sequence, and the one that says the same in a sequence shorter by one. */
const SHORTER: ReadonlyMap<number, number> = new Map([
  [0xfc80, 0xf8],
  [0xf880, 0xf0],
  [0xf080, 0xe0],
  [0xe080, 0xc0],
  [0xe081, 0xc1],
]);

/**
 * Whether a part of a path holds a segment `.` or `..` (RFC 3986, section 5.2.4) once it has been decoded as often as that
 * changes anything. As the laxest of servers would have it: either slash parts segments, what follows a `;` in one does not
 * count, over-long UTF-8 and `%u002e` are decoded, white space and control characters are left out. Takes time in proportion
 * to the text.
 */
export function hasDotSegment(text: string): boolean {
  if (!/[.%]/.test(text)) return false;
  return /(?:^|[/\\])\.\.?(?:;[^/\\]*)?(?:[/\\]|$)/.test(fullyDecoded(text));
}

/** The UTF-8 of a text, a character for each byte, in which nothing is left to decode. */
function fullyDecoded(text: string): string {
  const bytes: number[] = [];
  for (const byte of Buffer.from(text)) append(bytes, byte);
  return Buffer.from(bytes).toString('latin1');
}

/** Appends a byte, or what it completes, which may complete something in turn. */
function append(bytes: number[], byte: number): void {
  for (let next = byte; next > SPACE && next !== DELETE; ) {
    bytes.push(next);
    const [length, decoded] = codeAtEnd(bytes);
    if (length === 0) return;
    bytes.length -= length;
    next = decoded;
  }
}

/** How many of the last bytes stand for another one, and for which. */
function codeAtEnd(bytes: readonly number[]): readonly [length: number, decoded: number] {
  const at = (back: number) => bytes[bytes.length - back] ?? 0;
  const isWide = at(6) === PERCENT && at(5) === LETTER_U && at(4) === DIGIT_ZERO && at(3) === DIGIT_ZERO;
  if (at(3) === PERCENT || isWide) {
    const digits = String.fromCharCode(at(2), at(1));
    if (/^[\da-f]{2}$/i.test(digits)) return [isWide ? 6 : 3, Number.parseInt(digits, 16)];
  }
  const isOverlong = (at(2) === 0xc0 || at(2) === 0xc1) && at(1) >> 6 === 0b10;
  if (isOverlong) return [2, ((at(2) & 1) << 6) | (at(1) & 0x3f)];
  const shorter = SHORTER.get((at(2) << 8) | at(1));
  return shorter === undefined ? [0, 0] : [2, shorter];
}
