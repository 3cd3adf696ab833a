import { randomBytes } from 'node:crypto';
import type { Hex } from './hex.ts';

const ID_BYTES = 32;
const DIGITS = 2 * ID_BYTES;
/** Random hex digits for many ids, drawn at once: a call to the generator costs more than making a hundred ids. */
let pool = Buffer.alloc(0);
let used = 0;

/** Returns 32 random bytes as `0x` hex. */
export function randomId(): Hex {
  if (used === pool.length) {
    pool = Buffer.from(randomBytes(128 * ID_BYTES).toString('hex'), 'latin1');
    used = 0;
  }
  used += DIGITS;
  // The pool is a buffer: a slice of a long string would keep the whole string in memory for as long as the id lives.
  return `0x${pool.toString('latin1', used - DIGITS, used)}`;
}
