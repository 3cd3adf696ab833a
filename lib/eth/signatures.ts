import { createPublicKey } from 'node:crypto';
import { noble } from '../process/packages.ts';
import { addressOfPublicKey, recoverFromHash } from './eip191.ts';
import { type Address, type Hex, isHex, toBytes } from './hex.ts';
import { signatureHex } from './statements.ts';

/**
 * Writes r ‖ s with the s that Ethereum accepts (EIP-2): of s and n − s, which are equally valid, the lower one. The recovery id
 * changes with s. @throws Error when r or s is out of range.
 */
function withLowS(rs: Uint8Array, recoveryId: number): Hex {
  const signature = noble().secp256k1.Signature.fromCompact(rs);
  return signatureHex(signature.normalizeS().toCompactRawBytes(), signature.hasHighS() ? 1 - recoveryId : recoveryId);
}

/**
 * Normalizes a wallet's signature: `v` 0 and 1 become 27 and 28, and `s` moves to the lower half of the curve order (EIP-2).
 * @param signature r ‖ s ‖ v, 65 bytes in hex, from any source.
 * @throws Error that says what is wrong and shows nothing of the value.
 */
export function normalizedSignature(signature: unknown): Hex {
  if (!isHex(signature) || signature.length !== 132) throw new Error('the signature is not 65 bytes of 0x hex');
  const bytes = toBytes(signature);
  const v = bytes[64] ?? 0;
  const recoveryId = v < 27 ? v : v - 27;
  if (recoveryId > 1) throw new Error('the v of the signature is none of 0, 1, 27 and 28');
  return withLowS(bytes.subarray(0, 64), recoveryId);
}

/**
 * Completes the bare ECDSA signature of an HSM or a key service: s moves to the lower half of the curve order (EIP-2), and v is
 * added, found by trying both values.
 *
 * @param hash the 32 bytes that were signed.
 * @param rs r ‖ s, 64 bytes; {@link parseDerSignature} reads them from a DER-encoded signature.
 * @param address the expected signer, with the EIP-55 checksum.
 * @throws Error when the signature is not by that address.
 */
export function recoverableSignature(hash: Uint8Array, rs: Uint8Array, address: Address): Hex {
  const signature = [0, 1].map((recoveryId) => withLowS(rs, recoveryId)).find((each) => isBy(address, hash, each));
  if (signature === undefined) throw new Error(`the signature is not by ${address}`);
  return signature;
}

function isBy(address: Address, hash: Uint8Array, signature: Hex): boolean {
  try {
    return recoverFromHash(hash, signature) === address;
  } catch {
    // Not every r is the x coordinate of a point on the curve.
    return false;
  }
}

/**
 * Returns r ‖ s, 64 bytes, of a DER-encoded signature (`Ecdsa-Sig-Value`, RFC 3279, section 2.2.3), as key services and TLS
 * libraries write it. Accepts only the unique DER encoding of the two numbers, both below the curve order.
 *
 * @throws Error for anything else.
 */
export function parseDerSignature(der: Uint8Array): Uint8Array {
  try {
    return noble().secp256k1.Signature.fromDER(der).toCompactRawBytes();
  } catch {
    throw new Error('the signature is not DER-encoded (Ecdsa-Sig-Value)');
  }
}

/**
 * Returns the address of a public key in DER (`SubjectPublicKeyInfo`, RFC 5480), as key services export it.
 *
 * @throws Error when it is no key on secp256k1.
 */
export function addressOfSpki(der: Uint8Array): Address {
  const { crv, x = '', y = '' } = jwkOf(der);
  if (crv !== 'secp256k1') throw new Error('the public key is not on the curve secp256k1');
  const point = [Buffer.of(4), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')];
  return addressOfPublicKey(Buffer.concat(point));
}

function jwkOf(der: Uint8Array) {
  try {
    return createPublicKey({ key: Buffer.from(der), format: 'der', type: 'spki' }).export({ format: 'jwk' });
  } catch {
    // The bytes are no key, or a key on a curve for which JWK has no name.
    return {};
  }
}
