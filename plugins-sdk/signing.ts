/** The SDK's entry for plugins that sign or provide signers. */

export type { Signed, SignRequest } from '../kernel/values.ts';
export { dataDigest } from '../lib/eth/eip191.ts';
export { type Address, checksumAddress, keccak256 } from '../lib/eth/hex.ts';
export { normalizedSignature } from '../lib/eth/signatures.ts';
export type { Statement } from '../lib/eth/statements.ts';
export * from './signing/settings.ts';
export { listedAs, markChecked } from './signing/signed.ts';
export { type OpenSigner, type SignerInUse, type Signing, signerType } from './signing/signers.ts';
export type { SignerRole } from './signing/variables.ts';
