import { randomBytes } from 'node:crypto';
import type { Hex } from './hex.ts';

const ID_BYTES = 32;
const DIGITS = 2 * ID_BYTES;
/** Random digits are drawn for many ids at once: one call to the generator costs more than a hundred ids. */
let pool = Buffer.alloc(0);
let used = 0;

/** 32 random bytes as `0x` hex. */
export function randomId(): Hex {
  if (used === pool.length) {
    pool = Buffer.from(randomBytes(128 * ID_BYTES).toString('hex'), 'latin1');
    used = 0;
  }
  used += DIGITS;
  // A slice of a text would keep all of it in memory for as long as the id is kept.
  return `0x${pool.toString('latin1', used - DIGITS, used)}`;
}
