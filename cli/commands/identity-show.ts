import { print } from '../../service/terminal.ts';
import type { Given } from '../arguments.ts';
import { readAddresses } from '../identity/addresses.ts';
import { recordName, zoneLine } from '../identity/record.ts';

/** Prints the TXT records that name the signer, and the one that comes next, for a zone file. */
export async function showIdentity(given: Given): Promise<number> {
  const name = recordName(given.value('domain'));
  const { current, next } = await readAddresses(given);
  for (const signer of [current, ...(next ? [next] : [])]) await print(`${zoneLine(name, signer)}\n`);
  return 0;
}
