import { createRequire } from 'node:module';

// In a file of its own: the process of an isolated plugin can load no file, so its bundle has to leave this one out.
const require = createRequire(import.meta.url);

/** Loaded from the file of this hash alone: the package's main entry contains every hash function. */
const { createKeccak }: Pick<typeof import('hash-wasm'), 'createKeccak'> = require('hash-wasm/dist/keccak.umd.min.js');

const hasher = await createKeccak(256);

/** Returns the 32 bytes of Ethereum's Keccak-256, whose padding is not that of SHA3-256 (FIPS 202). */
export const keccak256 = (bytes: Uint8Array): Uint8Array => hasher.init().update(bytes).digest('binary');
