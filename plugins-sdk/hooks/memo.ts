import { type Json, WrongShape } from '../kernel.ts';
import { plainText, TooLong } from '../results/plain.ts';

/** What one plugin keeps of one request from hook to hook: plain JSON. */
export interface Memo {
  [name: string]: Json | undefined;
}

/** Bytes of JSON text. */
const MAX_MEMO = 4096;

// Taken before any plugin is loaded, since a plugin may replace it.
const { byteLength } = Buffer;

/**
 * The JSON text of a memo, each member read once.
 * @throws WrongShape, and whatever reading the memo throws.
 */
export function memoText(memo: object): string {
  try {
    const text = plainText(memo, MAX_MEMO);
    if (byteLength(text) > MAX_MEMO) throw new TooLong('');
    return text;
  } catch (error) {
    if (error instanceof TooLong) throw new WrongShape(`"memo" is longer than ${MAX_MEMO} bytes`);
    throw error instanceof WrongShape ? new WrongShape(`"memo" is no plain JSON: it ${error.message}`) : error;
  }
}
