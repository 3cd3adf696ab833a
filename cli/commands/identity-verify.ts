import { type Address, checksumAddress, isAddress } from '../../lib/eth/hex.ts';
import { signerFromEnvironment } from '../../plugins-sdk/signing/local-key.ts';
import { VARIABLES } from '../../plugins-sdk/signing/variables.ts';
import { readEnvironment } from '../../service/surroundings.ts';
import { print } from '../../service/terminal.ts';
import { ADDRESS_RULE, checkedOption, type Given, UsageError } from '../arguments.ts';
import { healthUrl, signerAt } from '../identity/health.ts';
import { lookUpTxt, readNameServer } from '../identity/lookup.ts';
import { readRecords, recordName } from '../identity/record.ts';

/** Whom the record must name. */
interface Expected {
  readonly address: Address;
  readonly source: string;
}

/**
 * Checks that the DNS record of a domain names a signer. It is the address given, that of a running service, or that of the key
 * in the environment.
 *
 * @returns 0 when it does, 1 when it names others; anything else is an error.
 */
export async function verifyIdentity(given: Given): Promise<number> {
  const name = recordName(given.value('domain'));
  const server = readNameServer(given.optional('resolver'));
  const { address, source } = await readExpected(given)();
  await print(`Expected: ${address} (${source})\nLooked up: TXT ${name} (${server.label})\n`);
  const { addresses, others } = readRecords(await lookUpTxt(name, server));
  if (addresses.length === 0) throw new Error(`${name}: the TXT record holds no address`);
  const ignored =
    others === 0
      ? ''
      : ` (and ${others} ${others === 1 ? 'entry that is no address' : 'entries that are no addresses'})`;
  const matches = addresses.includes(address);
  await print(`Found: ${addresses.join(', ')}${ignored}\nMatch: ${matches ? 'yes' : 'no'}\n`);
  return matches ? 0 : 1;
}

/** @throws UsageError before anything is asked. */
function readExpected(given: Given): () => Promise<Expected> {
  const envFile = given.optional('env');
  if (['address', 'url', 'env'].filter((name) => given.optional(name) !== undefined).length > 1) {
    throw new UsageError('only one of --address, --url and --env can be given: each names a signer');
  }
  const address = checkedOption(given, 'address', isAddress, ADDRESS_RULE);
  const url = given.optional('url');
  if (isAddress(address)) return async () => ({ address: checksumAddress(address), source: 'given' });
  if (url !== undefined) {
    const health = healthUrl(url);
    return async () => ({ address: await signerAt(health), source: health });
  }
  return async () => {
    const env = await readEnvironment(envFile);
    if (Object.values(VARIABLES.current).every((name) => !env[name])) {
      throw new UsageError(
        'no signer to look for: give --address <address> or --url <url>, or set SERVICE_PRIVATE_KEY or SERVICE_MNEMONIC',
      );
    }
    return { address: signerFromEnvironment(env).address, source: 'the key in the environment' };
  };
}
