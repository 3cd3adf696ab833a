import type { Address } from '../lib/eth/hex.ts';
import published from './public-keys.json' with { type: 'json' };

/** Addresses of keys that are published, without `0x`, by where they are. Of the mnemonics it is the first address, or as many as a tool unlocks. */
const PUBLISHED: Readonly<Record<string, readonly string[]>> = published;

/** What an operator is told at every start of a key that is known to be published: anyone can sign with it. */
export function publicKeyWarning(address: Address): string | undefined {
  const plain = address.slice(2).toLowerCase();
  const source = Object.keys(PUBLISHED).find((each) => PUBLISHED[each]?.includes(plain));
  return (
    source &&
    `the key of ${address} is public (${source}): anyone can sign in its name; make one with generate-mnemonic`
  );
}
