import { randomBytes } from 'node:crypto';
import type { Hex } from './hex.ts';

const ID_BYTES = 32;
const DIGITS = 2 * ID_BYTES;
/** Random digits are drawn for many ids at once: one call to the generator costs more than a hundred ids. */
let pool = '';
let used = 0;

/** 32 random bytes as `0x` hex. */
export function randomId(): Hex {
  if (used === pool.length) {
    pool = randomBytes(128 * ID_BYTES).toString('hex');
    used = 0;
  }
  used += DIGITS;
  return `0x${pool.slice(used - DIGITS, used)}`;
}
