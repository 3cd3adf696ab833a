import type { Address } from '../lib/eth/hex.ts';
import published from './public-keys.json' with { type: 'json' };

/** Addresses of published keys, lower-case without `0x`, by source. A mnemonic has its first, or as many as a tool unlocks. */
const PUBLISHED: Readonly<Record<string, readonly string[]>> = published;

/** Returns a warning when the address belongs to a published key, with which anyone can sign. */
export function publicKeyWarning(address: Address): string | undefined {
  const source = Object.keys(PUBLISHED).find((each) => PUBLISHED[each]?.includes(address.slice(2).toLowerCase()));
  return (
    source &&
    `the key of ${address} is public (${source}): anyone can sign in its name; make one with generate-mnemonic`
  );
}
