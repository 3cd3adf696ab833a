import { signerFromEnvironment } from '../../plugins-sdk/signer.ts';
import type { Given } from '../arguments.ts';
import { recordName, zoneLine } from '../identity/record.ts';
import { readEnvironment } from '../surroundings.ts';
import { print } from '../terminal.ts';

/** Prints the TXT record that names the signer of `SERVICE_MNEMONIC` or `SERVICE_PRIVATE_KEY`, for a zone file. */
export async function showIdentity(given: Given): Promise<number> {
  const name = recordName(given.value('domain'));
  const env = await readEnvironment(given.optional('env'));
  await print(`${zoneLine(name, signerFromEnvironment(env).address)}\n`);
  return 0;
}
