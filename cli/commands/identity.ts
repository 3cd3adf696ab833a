import { checksumAddress, isAddress } from '../../lib/eth/hex.ts';
import { VARIABLES } from '../../plugins-sdk/signing/variables.ts';
import { readEnvironment } from '../../service/surroundings.ts';
import { print } from '../../service/terminal.ts';
import { ADDRESS_RULE, checkedOption, type Given, requireWith, UsageError } from '../arguments.ts';
import { readAddresses } from '../identity/addresses.ts';
import { serviceUrl, signerAt } from '../identity/health.ts';
import { lookUpTxt } from '../identity/lookup.ts';
import { readRecords, recordName, zoneLine } from '../identity/record.ts';

/** Prints the DNS records that name the signer, or with `--check` looks them up. */
export async function identity(given: Given): Promise<number> {
  const name = recordName(given.value('domain'));
  if (given.flag('check')) return check(given, name);
  requireWith(given, 'check', ['address', 'url']);
  const { current, next } = await readAddresses(given);
  for (const signer of [current, ...(next ? [next] : [])]) await print(`${zoneLine(name, signer)}\n`);
  return 0;
}

/**
 * Checks that a domain's DNS record names a signer: the address given, or that of a running service, a config or the key
 * in the environment.
 *
 * @returns 0 when it does, 1 when it names others. @throws Error for anything else.
 */
async function check(given: Given, name: string): Promise<number> {
  const { address, source } = await readExpected(given);
  await print(`Expected: ${address} (${source})\nLooked up: TXT ${name} (system resolver)\n`);
  const { addresses, others } = readRecords(await lookUpTxt(name));
  if (addresses.length === 0) throw new Error(`${name}: the TXT record holds no address`);
  const entries = others === 1 ? 'entry that is no address' : 'entries that are no addresses';
  const ignored = others === 0 ? '' : ` (and ${others} ${entries})`;
  const matches = addresses.includes(address);
  await print(`Found: ${addresses.join(', ')}${ignored}\nMatch: ${matches ? 'yes' : 'no'}\n`);
  return matches ? 0 : 1;
}

/** Finds the signer that the record must name, and says where it was found. @throws UsageError before any request. */
async function readExpected(given: Given) {
  const isNamed = (...names: string[]) => names.some((name) => given.optional(name) !== undefined);
  if ([isNamed('address'), isNamed('url'), isNamed('env', 'config')].filter(Boolean).length > 1)
    throw new UsageError('only one of --address, --url and -c or --env can be given: each names a signer');
  const address = checkedOption(given, 'address', isAddress, ADDRESS_RULE);
  const url = given.optional('url');
  if (isAddress(address)) return { address: checksumAddress(address), source: 'given' };
  if (url === undefined) return readOwn(given);
  const health = `${serviceUrl(url)}/health`;
  return { address: await signerAt(health), source: health };
}

/** Returns the signer of the config or of the environment. @throws UsageError when there is none. */
async function readOwn(given: Given) {
  const config = given.optional('config');
  const env = await readEnvironment(given.optional('env'));
  if (config === undefined && Object.values(VARIABLES.current).every((name) => !env[name])) {
    throw new UsageError(
      'no signer to look for: give --address <address> or --url <url>, or set SERVICE_PRIVATE_KEY or SERVICE_MNEMONIC',
    );
  }
  const { current } = await readAddresses(given, env);
  return { address: current, source: config === undefined ? 'the key in the environment' : `the signer of ${config}` };
}
