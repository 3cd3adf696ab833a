import { createRequire } from 'node:module';
import { setTimeout } from 'node:timers/promises';

const require = createRequire(import.meta.url);

/** A module that takes long to load, loaded when it is first needed. */
function lazy<T>(name: string): () => T {
  let loaded: T | undefined;
  return () => {
    loaded ??= require(name) as T;
    return loaded;
  };
}

/** Most services never need it, and it costs a third of their start and memory. */
export const ethers = lazy<typeof import('ethers')>('ethers');

/** Needed by signers that answer in DER. */
export const noble = lazy<typeof import('@noble/curves/secp256k1')>('@noble/curves/secp256k1');

/** Needed from the first upstream call on. */
export const undici = lazy<typeof import('undici')>('undici');

/** Milliseconds: by then the port is open, if other plugins start fast, and perhaps nobody has called yet. */
const SOON_MS = 100;

/** Does soon after the start what the first request would have to wait for. */
export function loadSoon(load: () => unknown): void {
  // What fails, such as where no file descriptor is left, is left to that request.
  void setTimeout(SOON_MS, undefined, { ref: false })
    .then(load)
    .catch(() => undefined);
}
