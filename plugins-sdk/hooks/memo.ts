import { WrongShape } from '../../kernel/stages.ts';
import type { Json } from '../../kernel/values.ts';
import { plainText, TooLong } from '../results/plain.ts';

/** The values that one plugin keeps for one request from hook to hook: plain JSON. */
export interface Memo {
  [name: string]: Json | undefined;
}

/** Most bytes of a memo's JSON text. */
const MAX_MEMO = 4096;

// Read before any plugin is loaded, since a plugin could replace it.
const { byteLength } = Buffer;

/**
 * Returns a memo as JSON text, and reads each member just once.
 * @throws WrongShape, and any error that reading the memo throws.
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
