import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { ethers } from '../process/lazy.ts';
import { toHex } from './hex.ts';

type Secp256k1 = typeof import('secp256k1');
type TinySecp256k1 = typeof import('tiny-secp256k1');

/** In the order of their speed. */
const BACKENDS = ['secp256k1', 'tiny-secp256k1', 'ethers'] as const;

/**
 * What does the arithmetic on the curve: libsecp256k1 as a native binding (`secp256k1`), the same library as WebAssembly
 * (`tiny-secp256k1`), or the JavaScript inside `ethers`. All give the same bytes; `tools/bench/ecdsa.ts` compares their speed.
 */
export type EcdsaBackend = (typeof BACKENDS)[number];

/** ECDSA on secp256k1. Keys and hashes have 32 bytes, signatures 64 (r ‖ s), public keys 65 (0x04 ‖ x ‖ y). */
interface Ecdsa {
  publicKeyOf(key: Uint8Array): Uint8Array;
  /** The nonce is deterministic (RFC 6979), s in the lower half of the curve order (EIP-2). */
  sign(hash: Uint8Array, key: Uint8Array): { readonly signature: Uint8Array; readonly recoveryId: number };
  /** @throws Error when the signature recovers to no public key. */
  recover(hash: Uint8Array, signature: Uint8Array, recoveryId: number): Uint8Array;
}

const require = createRequire(import.meta.url);

/** The package's main entry would silently use slow JavaScript where its binding is missing: so the binding is asked for. */
function native(): Ecdsa {
  const secp256k1: Secp256k1 = require('secp256k1/bindings');
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
}

function webAssembly(): Ecdsa {
  const secp256k1: TinySecp256k1 = require('tiny-secp256k1');
  return {
    publicKeyOf: (key) => existing(secp256k1.pointFromScalar(key, false)),
    sign: (hash, key) => secp256k1.signRecoverable(hash, key),
    recover: (hash, signature, recoveryId) => {
      if (recoveryId !== 0 && recoveryId !== 1) throw new RangeError('recovery id must be 0 or 1');
      return existing(secp256k1.recover(hash, signature, recoveryId, false));
    },
  };
}

function javaScript(): Ecdsa {
  const bytesOf = (hex: string) => Buffer.from(hex.slice(2), 'hex');
  const keyOf = (key: Uint8Array) => new (ethers().SigningKey)(key);
  return {
    publicKeyOf: (key) => bytesOf(keyOf(key).publicKey),
    sign: (hash, key) => {
      const { r, s, yParity: recoveryId } = keyOf(key).sign(hash);
      return { signature: Buffer.concat([bytesOf(r), bytesOf(s)]), recoveryId };
    },
    recover: (hash, signature, recoveryId) => {
      const [r, s] = [toHex(signature.subarray(0, 32)), toHex(signature.subarray(32))];
      return bytesOf(ethers().SigningKey.recoverPublicKey(hash, { r, s, v: 27 + recoveryId }));
    },
  };
}

function existing(point: Uint8Array | null): Uint8Array {
  if (point === null) throw new Error('there is no such point');
  return point;
}

const loaders: Readonly<Record<EcdsaBackend, () => Ecdsa>> = {
  secp256k1: native,
  'tiny-secp256k1': webAssembly,
  ethers: javaScript,
};
const loaded = new Map<EcdsaBackend, Ecdsa | undefined>();

/** Loads a backend at the first call: none but the fastest that there is shall cost the start anything. */
function load(backend: EcdsaBackend): Ecdsa | undefined {
  if (!loaded.has(backend)) {
    let ecdsa: Ecdsa | undefined;
    try {
      ecdsa = loaders[backend]();
    } catch {
      // Not installed, not built for this platform, or forbidden: the caller says what follows.
    }
    loaded.set(backend, ecdsa);
  }
  return loaded.get(backend);
}

/** The backend used where the caller does not choose: the fastest that can be loaded. */
export const defaultBackend: EcdsaBackend = BACKENDS.find((backend) => load(backend) !== undefined) ?? 'ethers';

/** @throws Error when the backend cannot be loaded: another one never takes its place unasked. */
export function ecdsaOf(backend: EcdsaBackend): Ecdsa {
  const ecdsa = load(backend);
  if (ecdsa === undefined) throw new Error(`the ECDSA backend ${backend} is not available`);
  return ecdsa;
}
