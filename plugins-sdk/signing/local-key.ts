import { defaultBackend, ecdsaOf } from '../../lib/eth/ecdsa.ts';
import { addressOfPublicKey, CURVE_ORDER } from '../../lib/eth/eip191.ts';
import { type Hex, toBytes } from '../../lib/eth/hex.ts';
import { type Statement, signatureHex } from '../../lib/eth/statements.ts';
import { ethers } from '../../lib/process/packages.ts';
import type { Signer } from './signers.ts';
import { type Environment, MissingKey, type SignerRole, VARIABLES } from './variables.ts';

/** The derivation path of a mnemonic's account: BIP-44, coin type 60, first account, first address. */
export const DERIVATION_PATH = "m/44'/60'/0'/0/0";

const PRIVATE_KEY = /^(?:0x)?([0-9a-fA-F]{64})$/;

/**
 * Makes a signer with a private key.
 *
 * @param privateKey 32 bytes of hex, with or without `0x`.
 * @param name what the error calls it.
 * @throws Error if the text is no private key (the message never shows it), or if the backend is not available.
 */
export function createSigner(privateKey: string, backend = defaultBackend, name = 'the private key'): Signer {
  const key = parsePrivateKey(privateKey);
  if (key === undefined) throw new Error(`${name} must be 32 bytes of hex, not zero and below the order of secp256k1`);
  const { publicKeyOf, sign } = ecdsaOf(backend);
  return Object.freeze({
    address: addressOfPublicKey(publicKeyOf(key)),
    backend,
    sign: ({ hash }: Statement): Hex => {
      const { signature, recoveryId } = sign(hash, key);
      return signatureHex(signature, recoveryId);
    },
  });
}

/**
 * Makes the operator's signer. `SERVICE_MNEMONIC` (BIP-39, English, no passphrase, at {@link DERIVATION_PATH}) wins over
 * `SERVICE_PRIVATE_KEY`; an empty variable counts as unset. The next signer has `SERVICE_NEXT_MNEMONIC` and
 * `SERVICE_NEXT_PRIVATE_KEY`.
 *
 * @throws Error naming the variable that is missing or invalid, never showing its value.
 */
export function signerFromEnvironment(env: Environment, role: SignerRole = 'current'): Signer {
  const names = VARIABLES[role];
  const { [names.mnemonic]: mnemonic, [names.privateKey]: privateKey } = env;
  if (mnemonic) return createSigner(privateKeyOfMnemonic(mnemonic, names.mnemonic));
  if (!privateKey) throw new MissingKey([names.privateKey, names.mnemonic]);
  return createSigner(privateKey, defaultBackend, names.privateKey);
}

function privateKeyOfMnemonic(mnemonic: string, name: string): string {
  try {
    return ethers().HDNodeWallet.fromPhrase(mnemonic, '', DERIVATION_PATH).privateKey;
  } catch {
    // The library's error quotes the words, so it is neither shown nor kept as a cause.
    throw new Error(`${name} must be a BIP-39 mnemonic: 12 to 24 English words with a valid checksum`);
  }
}

function parsePrivateKey(privateKey: unknown): Uint8Array | undefined {
  const digits = typeof privateKey === 'string' ? PRIVATE_KEY.exec(privateKey)?.[1] : undefined;
  if (digits === undefined) return undefined;
  const scalar = BigInt(`0x${digits}`);
  if (scalar === 0n || scalar >= CURVE_ORDER) return undefined;
  // Copied out of Buffer's shared pool, where any other small Buffer of the process could reach it.
  const pooled = toBytes(`0x${digits}`);
  const key = new Uint8Array(pooled);
  pooled.fill(0);
  return key;
}
