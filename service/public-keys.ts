import type { Address } from '../lib/eth/hex.ts';
import published from './public-keys.json' with { type: 'json' };

/** Addresses of keys that are published, without `0x`, by where they are. Of the mnemonics it is the first address, or as many as a tool unlocks. */
const PUBLISHED: Readonly<Record<string, readonly string[]>> = published;

/** Where the key of an address is published, if it is known to be: then anyone can sign with it. */
export function publishedIn(address: Address): string | undefined {
  const plain = address.slice(2).toLowerCase();
  return Object.keys(PUBLISHED).find((source) => PUBLISHED[source]?.includes(plain));
}

/** What an operator is told at every start. */
export function publicKeyWarning(address: Address): string | undefined {
  const source = publishedIn(address);
  return (
    source &&
    `the key of ${address} is public (${source}): anyone can sign in its name; make one with generate-mnemonic`
  );
}
