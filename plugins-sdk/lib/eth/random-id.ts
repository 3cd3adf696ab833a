import { randomBytes } from 'node:crypto';
import type { Hex } from './hex.ts';

const ID_BYTES = 32;
/** Random bytes are drawn for many ids at once: one call to the generator costs more than a hundred ids. */
let pool = Buffer.alloc(0);
let used = 0;

/** 32 random bytes as `0x` hex. */
export function randomId(): Hex {
  if (used === pool.length) {
    pool = randomBytes(128 * ID_BYTES);
    used = 0;
  }
  used += ID_BYTES;
  return `0x${pool.toString('hex', used - ID_BYTES, used)}`;
}
