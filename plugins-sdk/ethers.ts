import { createRequire } from 'node:module';

type Ethers = typeof import('ethers');

let loaded: Ethers | undefined;

/** ethers, loaded when it is first needed: most services never do, and it costs a third of their start and memory. */
export function ethers(): Ethers {
  loaded ??= createRequire(import.meta.url)('ethers') as Ethers;
  return loaded;
}
