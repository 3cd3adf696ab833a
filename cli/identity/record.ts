import { isIP } from 'node:net';
import { domainToASCII, domainToUnicode } from 'node:url';
import { type Address, checksumAddress } from '../../lib/eth/hex.ts';
import { UsageError } from '../arguments.ts';

/** The label under which a domain names its signer (specification, Authentication 6). */
const LABEL = '_node.';

/** The most characters of a name without its final dot (RFC 1035, section 2.3.4). */
const LONGEST_NAME = 253;

/** Seconds for which resolvers may keep the record, and within which a rotation is known everywhere. */
const TTL_SECONDS = 300;

const OPTION = 'option -d, --domain <domain>';
const NO_DOMAIN = `${OPTION} must be a domain name such as api.example.com`;

/**
 * Returns the name at which a domain publishes its signer's address: in ASCII (IDNA, UTS 46), lower-case, without a final dot.
 *
 * @throws UsageError when the text is no domain name, or one that is too long with the label in front.
 */
export function recordName(domain: string): string {
  const name = asciiName(domain);
  if (name.startsWith(LABEL)) throw new UsageError(`${OPTION} must be the domain of the API, without "${LABEL}"`);
  const isTooLong = LABEL.length + name.length > LONGEST_NAME;
  if (isTooLong || isIP(name) !== 0 || !name.split('.').every(isLabel)) throw new UsageError(NO_DOMAIN);
  return LABEL + name;
}

function asciiName(domain: string): string {
  // The conversion parses its text as the host of a URL: it would cut "a/b" to "a", and decode "%61" to "a".
  if (/[^\p{L}\p{M}\p{N}\p{S}._-]/u.test(domain)) throw new UsageError(NO_DOMAIN);
  const name = domainToASCII(domain).replace(/\.$/, '');
  // Node 24 keeps invalid Punycode as it is; earlier versions refuse it.
  if (/(?:^|\.)xn--/.test(name) && /(?:^|\.)xn--/.test(domainToUnicode(name))) throw new UsageError(NO_DOMAIN);
  return name;
}

/** Returns whether a label is valid: at most 63 letters, digits, inner hyphens, and underscores as in service names (RFC 8552). */
function isLabel(label: string): boolean {
  return /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label);
}

/** Returns the record as a line of a zone file (RFC 1035, section 5.1). */
export function zoneLine(name: string, address: Address): string {
  return `${name}. ${TTL_SECONDS} IN TXT "${address}"`;
}

/**
 * Reads TXT records: comma-separated addresses in any case, in any number of records (ERC-7529). The strings of one
 * record are joined without anything between them (RFC 7208, section 3.3).
 *
 * @param records the strings of each record.
 * @returns the addresses with checksum, each once, and the number of entries that are no addresses.
 */
export function readRecords(records: readonly (readonly string[])[]) {
  const entries = records
    .flatMap((strings) => strings.join('').split(','))
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  const addresses = entries
    .filter((entry) => /^0x[0-9a-f]{40}$/i.test(entry))
    .map((entry) => checksumAddress(entry.toLowerCase()));
  return { addresses: [...new Set(addresses)], others: entries.length - addresses.length };
}
