import type { Keys } from './keys.ts';

const WORD = 1n << 64n;

/** Each block holds 4 bits of the value below a bit of padding, in the 5 highest bits of its 64. */
const BLOCK_BITS = 4;
const SHIFT = 59n;

/** Noise stays far below half a step; what is read with a wrong key or from a wrong place does not. */
const MOST_NOISE = 1n << 50n;

/**
 * Decrypts a packed list of one integer as the SDK submits it, with plain arithmetic on the serialized bytes: a compact
 * list (RLWE) is one mask polynomial of the lattice's dimension and a body per block.
 *
 * The formats are found by their lengths, not parsed: a vector is its length as 64 bits, then its words of 64 bits, all
 * little-endian. Where bytes look like a list or a key by accident, the noise is too large.
 *
 * @throws Error when no reading gives a value.
 */
export function decrypt(ciphertext: Uint8Array, { client, dimension }: Keys, bits: number): bigint {
  const blocks = bits / BLOCK_BITS;
  const secrets = vectors(client, dimension).filter((words) => words.every((word) => word <= 1n));
  for (const list of vectors(Buffer.from(ciphertext), dimension + blocks)) {
    for (const secret of secrets) {
      const value = decode(list.slice(0, dimension), list.slice(dimension), secret);
      if (value !== undefined) return value;
    }
  }
  throw new Error('the ciphertext does not decrypt');
}

/** Every place that reads like a vector of this length. */
function vectors(bytes: Buffer, length: number): bigint[][] {
  const found: bigint[][] = [];
  const start = Buffer.from(BigUint64Array.of(BigInt(length)).buffer);
  const last = bytes.length - 8 * (length + 1);
  for (let at = bytes.indexOf(start); at !== -1 && at <= last; at = bytes.indexOf(start, at + 1))
    found.push(Array.from({ length }, (_, i) => bytes.readBigUInt64LE(at + 8 * (i + 1))));
  return found;
}

function decode(mask: readonly bigint[], bodies: readonly bigint[], secret: readonly bigint[]): bigint | undefined {
  let value = 0n;
  for (const [i, body] of bodies.entries()) {
    const phase = modulo(body - product(mask, secret, i));
    const step = (phase + (1n << (SHIFT - 1n))) >> SHIFT;
    const noise = phase - (step << SHIFT);
    const block = step & 31n;
    if ((noise < 0n ? -noise : noise) > MOST_NOISE || block > 15n) return undefined;
    value |= block << BigInt(BLOCK_BITS * i);
  }
  return value;
}

/** The inner product of the secret with the i-th row: the mask turned by i places, what wraps round negated. */
function product(mask: readonly bigint[], secret: readonly bigint[], i: number): bigint {
  const { length } = mask;
  let sum = 0n;
  for (const [j, bit] of secret.entries()) {
    if (bit === 0n) continue;
    const word = mask[(j - i + length) % length] ?? 0n;
    sum += j < i ? -word : word;
  }
  return sum;
}

function modulo(value: bigint): bigint {
  return ((value % WORD) + WORD) % WORD;
}
