/** Bytes of hex from which packing is worth it, and at most, so that a character can say how many they are. */
const LEAST = 16;
const MOST = 255;
/** Stands before packed bytes, and before a zero where it stands for itself. */
const MARK = '\x01';

const scratch = Buffer.alloc(MOST);

/**
 * A text that takes less memory. Bytes in lower-case hex (`0x…`: transactions, accounts, tokens) become characters below 256, of
 * which the engine stores each in a byte. Different texts stay different.
 */
export function packed(text: string): string {
  const plain = text.includes(MARK) ? text.replaceAll(MARK, `${MARK}\0`) : text;
  // Joined, they are one piece of memory, which texts that are added are not.
  const parts: string[] = [];
  let from = 0;
  for (let at = plain.indexOf('0x'); at !== -1; at = plain.indexOf('0x', at + 2)) {
    const bytes = scratch.write(plain.slice(at + 2, at + 2 + 2 * MOST), 'hex');
    if (bytes < LEAST) continue;
    const end = at + 2 + 2 * bytes;
    // Upper case would be lost.
    if (scratch.toString('hex', 0, bytes) !== plain.slice(at + 2, end)) continue;
    parts.push(plain.slice(from, at), MARK, String.fromCharCode(bytes), scratch.toString('latin1', 0, bytes));
    from = end;
  }
  if (from === 0) return plain;
  parts.push(plain.slice(from));
  return parts.join('');
}

/** The text that was packed. */
export function unpacked(text: string): string {
  let result = '';
  let from = 0;
  for (let at = text.indexOf(MARK); at !== -1; at = text.indexOf(MARK, from)) {
    const begin = at + 2;
    const end = begin + text.charCodeAt(at + 1);
    result += text.slice(from, at);
    result += end === begin ? MARK : `0x${Buffer.from(text.slice(begin, end), 'latin1').toString('hex')}`;
    from = end;
  }
  return result + text.slice(from);
}
