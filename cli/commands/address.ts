import { signerFromEnvironment } from '../../plugins-sdk/signer.ts';
import type { Given } from '../arguments.ts';
import { readEnvironment } from '../surroundings.ts';
import { print } from '../terminal.ts';

/** Prints the address of `SERVICE_MNEMONIC` or `SERVICE_PRIVATE_KEY`. */
export async function address(given: Given): Promise<number> {
  const env = await readEnvironment(given.optional('env'));
  await print(`${signerFromEnvironment(env).address}\n`);
  return 0;
}
