import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { ethers } from '../process/packages.ts';
import { toHex } from './hex.ts';

/**
 * The library that computes on the curve: libsecp256k1 as a native binding (`secp256k1`), or the JavaScript inside `ethers`.
 * Both return the same bytes.
 */
export type EcdsaBackend = 'secp256k1' | 'ethers';

/** ECDSA on secp256k1. Keys and hashes have 32 bytes, signatures 64 (r ‖ s), public keys 65 (0x04 ‖ x ‖ y). */
interface Ecdsa {
  publicKeyOf(key: Uint8Array): Uint8Array;
  /** Signs with a deterministic nonce (RFC 6979), and with s in the lower half of the curve order (EIP-2). */
  sign(hash: Uint8Array, key: Uint8Array): { readonly signature: Uint8Array; readonly recoveryId: number };
  /** Returns the signer's public key. @throws Error when the signature recovers to none. */
  recover(hash: Uint8Array, signature: Uint8Array, recoveryId: number): Uint8Array;
}

const require = createRequire(import.meta.url);

function native(): Ecdsa | undefined {
  try {
    // The main entry of the package would silently use slow JavaScript where its binding is missing.
    const secp256k1: typeof import('secp256k1') = require('secp256k1/bindings');
    // Blinds the arithmetic against side channels; signatures stay the same.
    secp256k1.contextRandomize(randomBytes(32));
    return {
      publicKeyOf: (key) => secp256k1.publicKeyCreate(key, false),
      sign: (hash, key) => {
        const { signature, recid: recoveryId } = secp256k1.ecdsaSign(hash, key);
        return { signature, recoveryId };
      },
      recover: (hash, signature, recoveryId) => secp256k1.ecdsaRecover(signature, recoveryId, hash, false),
    };
  } catch {
    // The binding is not installed, not built for this platform, or forbidden. Callers fall back or fail.
    return undefined;
  }
}

function javaScript(): Ecdsa {
  const keyOf = (key: Uint8Array) => new (ethers().SigningKey)(key);
  return {
    publicKeyOf: (key) => ethers().getBytes(keyOf(key).publicKey),
    sign: (hash, key) => {
      const { r, s, yParity: recoveryId } = keyOf(key).sign(hash);
      return { signature: Buffer.concat([ethers().getBytes(r), ethers().getBytes(s)]), recoveryId };
    },
    recover: (hash, signature, recoveryId) => {
      const [r, s] = [toHex(signature.subarray(0, 32)), toHex(signature.subarray(32))];
      return ethers().getBytes(ethers().SigningKey.recoverPublicKey(hash, { r, s, v: 27 + recoveryId }));
    },
  };
}

const backends: Readonly<Record<EcdsaBackend, Ecdsa | undefined>> = { secp256k1: native(), ethers: javaScript() };

/** The backend for callers that choose none: the native one, which is faster, if it can be loaded. */
export const defaultBackend: EcdsaBackend = backends.secp256k1 === undefined ? 'ethers' : 'secp256k1';

/** Returns a backend. @throws Error when it cannot be loaded; there is no silent fallback to the other one. */
export function ecdsaOf(backend: EcdsaBackend): Ecdsa {
  const ecdsa = backends[backend];
  if (ecdsa === undefined) throw new Error(`the ECDSA backend ${backend} is not available`);
  return ecdsa;
}
