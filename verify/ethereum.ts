import { keccak_256 } from '@noble/hashes/sha3';
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils';
import { secp256k1 } from './secp256k1.ts';

/** `0x` and hex digits. */
export type Hex = `0x${string}`;

const HEX = /^0x(?:[0-9a-fA-F]{2})*$/;
const PERSONAL_PREFIX: Hex = `0x${bytesToHex(utf8ToBytes('\x19Ethereum Signed Message:\n32'))}`;
const WORD_BITS = 256;

/** Checks for `0x` and an even number of hex digits, and for exactly `length` bytes if that is given. */
export function isHex(value: unknown, length?: number): value is Hex {
  if (typeof value !== 'string' || (length !== undefined && value.length !== 2 + 2 * length)) return false;
  return HEX.test(value);
}

/** Checks for an address: 20 bytes of hex, in one case or with the right checksum (EIP-55). */
export function isAddress(value: unknown): value is Hex {
  if (!isHex(value, 20)) return false;
  const digits = value.slice(2);
  return digits === digits.toLowerCase() || digits === digits.toUpperCase() || value === checksumAddress(value);
}

/** Returns the keccak-256 hash of a text in UTF-8. */
export function hashOfText(text: string): Hex {
  return `0x${bytesToHex(keccak_256(utf8ToBytes(text)))}`;
}

/** Returns the keccak-256 hash of concatenated bytes. */
export function hashOf(...parts: readonly Hex[]): Hex {
  return `0x${bytesToHex(keccak_256(concatBytes(...parts.map(bytesOf))))}`;
}

/** Returns a non-negative integer as 32 bytes. */
export function wordOf(value: number): Hex {
  return `0x${value.toString(16).padStart(WORD_BITS / 4, '0')}`;
}

/** Returns the digest of an answer: keccak256(encodePacked(bytes32 endpointId, uint256 timestamp, bytes data)). */
export function digestOf(endpointId: Hex, timestamp: number, data: Hex): Hex {
  return hashOf(endpointId, wordOf(timestamp), data);
}

/** The signer's address with the checksum of EIP-55, or what is wrong with the signature. */
export type Recovered = { readonly address: Hex } | { readonly problem: string };

/** Returns the signer of an EIP-191 personal signature of 32 bytes; see {@link recoverFrom}. */
export function recoverSigner(digest: Hex, signature: Hex): Recovered {
  return recoverFrom(hashOf(PERSONAL_PREFIX, digest), signature);
}

/**
 * Returns the signer of a hash. Accepts only signatures that a contract accepts: `v` 27 or 28, and `s` in the lower half of the
 * order (EIP-2).
 *
 * @param signature r ‖ s ‖ v, 65 bytes.
 */
export function recoverFrom(hash: Hex, signature: Hex): Recovered {
  const bytes = bytesOf(signature);
  const v = bytes[64];
  if (v !== 27 && v !== 28) return { problem: 'its v must be 27 or 28' };
  try {
    const parsed = secp256k1.Signature.fromCompact(bytes.subarray(0, 64));
    if (parsed.hasHighS()) return { problem: 'its s is in the upper half of the curve order (EIP-2)' };
    const publicKey = parsed
      .addRecoveryBit(v - 27)
      .recoverPublicKey(bytesOf(hash))
      .toRawBytes(false);
    return { address: checksumAddress(`0x${bytesToHex(keccak_256(publicKey.subarray(1)).subarray(12))}`) };
  } catch {
    return { problem: 'it belongs to no public key' };
  }
}

/** Checks whether two hex texts stand for the same bytes. */
export function isSame(one: Hex, other: Hex): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

/** Returns an address with its checksum (EIP-55). */
export function checksumAddress(address: Hex): Hex {
  const digits = address.slice(2).toLowerCase();
  const hash = hashOfText(digits);
  const cased = [...digits].map((digit, i) => (hash.charAt(i + 2) >= '8' ? digit.toUpperCase() : digit));
  return `0x${cased.join('')}`;
}

function bytesOf(hex: Hex): Uint8Array {
  return hexToBytes(hex.slice(2));
}
