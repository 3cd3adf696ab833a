import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** A module that takes long to load, loaded when it is first needed. */
function lazy<T>(name: string): () => T {
  let loaded: T | undefined;
  return () => {
    loaded ??= require(name) as T;
    return loaded;
  };
}

/** Milliseconds: by then the port is open, if other plugins start fast, and perhaps nobody has called yet. */
const WARM_UP = 100;

/** Loads soon after the start what requests will need, so that few of them wait for it and the start does not. */
export function warmUp(load: () => unknown): void {
  const warm = () => {
    try {
      load();
    } catch {
      // No file descriptor is left, for one: the request that needs it tries again.
    }
  };
  setTimeout(warm, WARM_UP).unref();
}

/** Most services never need it, and it costs a third of their start and memory. */
export const ethers = lazy<typeof import('ethers')>('ethers');

/** Needed from the first upstream call on. */
export const undici = lazy<typeof import('undici')>('undici');
