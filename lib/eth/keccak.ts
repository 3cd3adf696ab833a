import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** A file of its own: the package's main one holds every other hash function, too. */
const { createKeccak }: Pick<typeof import('hash-wasm'), 'createKeccak'> = require('hash-wasm/dist/keccak.umd.min.js');

const hasher = await createKeccak(256);

/** The 32 bytes of Ethereum's Keccak-256, whose padding is not that of SHA3-256 (FIPS 202). */
export const keccak256 = (bytes: Uint8Array): Uint8Array => hasher.init().update(bytes).digest('binary');
