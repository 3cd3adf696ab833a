import { createKeccak } from 'hash-wasm';

/** Maps bytes to 32 bytes. */
export type Keccak256 = (bytes: Uint8Array) => Uint8Array;

const hasher = await createKeccak(256);

/** Keccak-256 as Ethereum uses it: the original padding, not that of SHA3-256 (FIPS 202). */
export const keccak256: Keccak256 = (bytes) => hasher.init().update(bytes).digest('binary');
