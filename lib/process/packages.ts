import { createRequire } from 'node:module';
import { setTimeout } from 'node:timers/promises';
import type { buildConnector, Client, errors } from 'undici';

const require = createRequire(import.meta.url);

/** Returns a function that loads a slow module on its first call. @param prepare called before that */
function lazy<T>(name: string, prepare?: () => void): () => T {
  let loaded: T | undefined;
  return () => {
    if (loaded === undefined) prepare?.();
    loaded ??= require(name) as T;
    return loaded;
  };
}

/** Loads ethers. Most services never need it, and it costs a third of the time to start and of the memory. */
export const ethers = lazy<typeof import('ethers')>('ethers');

/** Loads noble's secp256k1, for signers that answer in DER. */
export const noble = lazy<typeof import('@noble/curves/secp256k1')>('@noble/curves/secp256k1');

/** undici looks the code of a parser's error up by its number, but its table has only the numbers by their codes. */
function completeParserCodes(): void {
  const { ERROR }: { readonly ERROR: Record<string, unknown> } = require('undici/lib/llhttp/constants.js');
  for (const [code, number] of Object.entries(ERROR)) ERROR[String(number)] ??= code;
}

/** Loads undici's client, needed from the first upstream call on. All of undici takes three times as long, and 9 MB more. */
export const undiciClient = lazy<typeof Client>('undici/lib/dispatcher/client.js', completeParserCodes);

/** Loads undici's maker of connectors. The client loads it, too. */
export const undiciConnector = lazy<typeof buildConnector>('undici/lib/core/connect.js');

/** Loads the classes of undici's errors. The client loads them, too. */
export const undiciErrors = lazy<typeof errors>('undici/lib/core/errors.js');

/** Milliseconds. By then the port is open, if other plugins start fast, and perhaps no request has come yet. */
const SOON_MS = 100;

/** Calls `load` soon after the start, so that the first request need not wait for it. */
export function loadSoon(load: () => unknown): void {
  // A failure, for example because no file descriptor is left, will be reported when a request loads the module.
  void setTimeout(SOON_MS, undefined, { ref: false })
    .then(load)
    .catch(() => undefined);
}

/**
 * Loads a package that operators install only if they use it.
 *
 * @param load imports it, for example `() => import('ioredis')`.
 * @param missing error text if the package, or one that it needs, is not installed: which setting needs it, and the command.
 */
export async function optionalPackage<T>(load: () => Promise<T>, missing: string): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error;
    throw new Error(missing);
  }
}
