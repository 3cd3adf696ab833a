import { defaultBackend, type EcdsaBackend, ecdsaOf } from './ecdsa.ts';
import { type Address, checksumAddress, type Hex, isHex, keccak256, toBytes, toHex } from './hex.ts';

/** The order n of the curve secp256k1 (SEC 2, section 2.4.1). */
export const CURVE_ORDER = 0xffff_ffff_ffff_ffff_ffff_ffff_ffff_fffe_baae_dce6_af48_a03b_bfd2_5e8c_d036_4141n;

const HALF_CURVE_ORDER = CURVE_ORDER >> 1n;
const UINT32 = 0x1_0000_0000;
const UINT256_BITS = 256n;
const TEXT_PREFIX = '\x19Ethereum Signed Message:\n';
/** The bytes before a 32-byte digest in a personal message. */
export const PERSONAL_PREFIX = Buffer.from(`${TEXT_PREFIX}32`, 'latin1');

/**
 * Returns the digest that the service signs: keccak256(encodePacked(bytes32 endpointId, uint256 timestamp, bytes data)).
 *
 * @param timestamp Unix seconds: a non-negative integer, a safe one when it is a number.
 * @returns 32 bytes.
 * @throws RangeError when the endpoint ID is not 32 bytes or the timestamp is no uint256.
 */
export function dataDigest(endpointId: Hex | Uint8Array, timestamp: number | bigint, data: Uint8Array): Uint8Array {
  const packed = Buffer.allocUnsafe(64 + data.byteLength);
  packed.set(bytesOfLength('endpointId', endpointId, 32), 0);
  packed.fill(0, 32, 64);
  if (typeof timestamp === 'bigint') placeUint256(packed, timestamp, 32);
  else placeUint64('timestamp', packed, timestamp, 56);
  packed.set(data, 64);
  return keccak256(packed);
}

/**
 * Returns the digest that a client of a paid endpoint signs:
 * keccak256(encodePacked(address node, bytes32 endpointId, uint64 expiresAt)).
 *
 * @param expiresAt Unix seconds: a non-negative safe integer.
 * @returns 32 bytes.
 * @throws RangeError when the node is not 20 bytes, the endpoint ID not 32, or `expiresAt` no such integer.
 */
export function paymentDigest(node: Address, endpointId: Hex, expiresAt: number): Uint8Array {
  const packed = Buffer.allocUnsafe(60);
  packed.set(bytesOfLength('node', node, 20), 0);
  packed.set(bytesOfLength('endpointId', endpointId, 32), 20);
  placeUint64('expiresAt', packed, expiresAt, 52);
  return keccak256(packed);
}

/**
 * Returns the hash that a personal signature of a 32-byte digest signs (EIP-191, version 0x45):
 * keccak256("\x19Ethereum Signed Message:\n32" ‖ digest).
 *
 * @returns 32 bytes.
 * @throws RangeError when the digest is not 32 bytes.
 */
export function personalDigest(digest32: Uint8Array): Uint8Array {
  const message = Buffer.concat([PERSONAL_PREFIX, bytesOfLength('digest', digest32, 32)]);
  return keccak256(message);
}

/**
 * Returns the hash that a personal signature of a text signs (EIP-191, version 0x45), as wallets do for a text they show. It is
 * keccak256("\x19Ethereum Signed Message:\n" ‖ number of UTF-8 bytes in decimal ‖ UTF-8 bytes).
 *
 * @param text a lone surrogate counts as U+FFFD, which it becomes in UTF-8.
 * @returns 32 bytes.
 */
export function personalTextDigest(text: string): Uint8Array {
  const bytes = Buffer.from(text, 'utf8');
  return keccak256(Buffer.concat([Buffer.from(`${TEXT_PREFIX}${bytes.length}`, 'latin1'), bytes]));
}

/**
 * Returns the signer of an EIP-191 personal signature of a 32-byte digest. A signature of another digest does not fail
 * but recovers to another address, so the caller must compare.
 *
 * @param signature r ‖ s ‖ v, 65 bytes, v being 27 or 28 (not the bare recovery id 0 or 1).
 * @returns The address with its checksum.
 * @throws RangeError when the digest is not 32 bytes.
 * @throws Error saying what is wrong with the signature: its length, v, r, a high s (EIP-2), or no such public key.
 */
export function recoverAddress(digest32: Uint8Array, signature: Hex, backend: EcdsaBackend = defaultBackend): Address {
  return recoverFromHash(personalDigest(digest32), signature, backend);
}

/**
 * Returns the signer of an EIP-191 personal signature of a text, as `verifyMessage` of ethers does. As with
 * {@link recoverAddress} the caller must compare.
 *
 * @param signature r ‖ s ‖ v, 65 bytes, v being 27 or 28 (not the bare recovery id 0 or 1).
 * @returns The address with its checksum.
 * @throws Error saying what is wrong with the signature: its length, v, r, a high s (EIP-2), or no such public key.
 */
export function recoverTextSigner(text: string, signature: Hex, backend: EcdsaBackend = defaultBackend): Address {
  return recoverFromHash(personalTextDigest(text), signature, backend);
}

/**
 * Returns the signer of a 32-byte hash, be it that of a personal message or of EIP-712 typed data. As with
 * {@link recoverAddress} the caller must compare.
 *
 * @throws Error saying what is wrong with the signature.
 */
export function recoverFromHash(hash: Uint8Array, signature: Hex, backend: EcdsaBackend = defaultBackend): Address {
  const { bytes, recoveryId } = parseSignature(signature);
  const { recover } = ecdsaOf(backend);
  let publicKey: Uint8Array;
  try {
    publicKey = recover(hash, bytes, recoveryId);
  } catch {
    throw new Error('signature recovers to no public key');
  }
  return addressOfPublicKey(publicKey);
}

/**
 * Returns the address of a public key: the last 20 bytes of its hash, with the EIP-55 checksum.
 *
 * @param publicKey uncompressed: 0x04 ‖ x ‖ y, 65 bytes.
 */
export function addressOfPublicKey(publicKey: Uint8Array): Address {
  return checksumAddress(toHex(keccak256(publicKey.subarray(1)).subarray(12)));
}

/** Reads a signature. @returns as `bytes` r ‖ s, 64 bytes. @throws Error saying what is wrong with it. */
function parseSignature(signature: Hex) {
  if (!isHex(signature) || signature.length !== 132) throw new Error('signature must be 65 bytes of 0x hex');
  const bytes = toBytes(signature);
  const v = bytes[64];
  if (v !== 27 && v !== 28) throw new Error('signature v must be 27 or 28');
  const r = BigInt(signature.slice(0, 66));
  const s = BigInt(`0x${signature.slice(66, 130)}`);
  if (r === 0n || r >= CURVE_ORDER) throw new Error('signature r is out of range');
  if (s === 0n || s >= CURVE_ORDER) throw new Error('signature s is out of range');
  if (s > HALF_CURVE_ORDER) throw new Error('signature s is in the upper half of the curve order (EIP-2)');
  return { bytes: bytes.subarray(0, 64), recoveryId: v - 27 };
}

function bytesOfLength(name: string, value: Hex | Uint8Array, length: number): Uint8Array {
  const bytes = value instanceof Uint8Array ? value : isHex(value) ? toBytes(value) : undefined;
  if (bytes?.byteLength !== length) throw new RangeError(`${name} must be ${length} bytes`);
  return bytes;
}

function placeUint64(name: string, target: Buffer, value: number, offset: number): void {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${name} must be a non-negative safe integer`);
  target.writeUInt32BE(Math.floor(value / UINT32), offset);
  target.writeUInt32BE(value % UINT32, offset + 4);
}

function placeUint256(target: Buffer, value: bigint, offset: number): void {
  if (value < 0n || value >> UINT256_BITS !== 0n) throw new RangeError('timestamp must be a uint256');
  target.write(value.toString(16).padStart(64, '0'), offset, 'hex');
}
