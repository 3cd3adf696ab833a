import { print } from '../../service/terminal.ts';
import type { Given } from '../arguments.ts';
import { readAddresses } from '../identity/addresses.ts';

/** Prints the signer's address: that of a config file, or that of `SERVICE_MNEMONIC` or `SERVICE_PRIVATE_KEY`. */
export async function address(given: Given): Promise<void> {
  await print(`${(await readAddresses(given)).current}\n`);
}
