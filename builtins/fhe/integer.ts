import { type Hex, toBytes } from '../../lib/eth/hex.ts';
import type { Bits } from './protocol.ts';

const WORD = 32;

/**
 * Decodes the one integer that was ABI-encoded.
 *
 * @param signed whether the bytes are an int256 (two's complement) instead of a uint256.
 * @throws RangeError unless the data is one word with a non-negative integer of at most `bits` bits. The message does not
 * show the value, which is about to become a secret.
 */
export function integerOf(data: Hex, signed: boolean, bits: Bits): bigint {
  const bytes = toBytes(data);
  if (bytes.length !== WORD) throw new RangeError(`the encoded value is not one integer but ${bytes.length} bytes`);
  if (signed && (bytes[0] ?? 0) > 0x7f) throw new RangeError('the encoded value is negative');
  const value = BigInt(data);
  if (value >> BigInt(bits) !== 0n) throw new RangeError(`the encoded value does not fit euint${bits}`);
  return value;
}
