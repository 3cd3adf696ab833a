import { isIP } from 'node:net';
import { domainToASCII, domainToUnicode } from 'node:url';
import { type Address, checksumAddress } from '../../lib/eth/hex.ts';
import { UsageError } from '../arguments.ts';

/** The label under which a domain names its signer (specification, Authentication 6). */
const LABEL = '_node.';

/** Characters of a name without the dot at its end, and of each part of it (RFC 1035, section 2.3.4). */
const LONGEST_NAME = 253;
const LONGEST_LABEL = 63;

/** Seconds that resolvers may keep the record: a rotation is known everywhere after this time. */
const TTL_SECONDS = 300;

const OPTION = 'option -d, --domain <domain>';

/**
 * The name at which a domain publishes the address of its signer: in ASCII (IDNA, UTS 46), lower-case, without a dot at the
 * end.
 *
 * @throws UsageError when the text is no domain name, or one too long to put the label in front.
 */
export function recordName(domain: string): string {
  const name = asciiName(domain);
  if (name.startsWith(LABEL)) throw new UsageError(`${OPTION} must be the domain of the API, without "${LABEL}"`);
  const labels = name.split('.');
  if (labels.some((label) => label.length > LONGEST_LABEL)) {
    throw new UsageError(`${OPTION} must have at most ${LONGEST_LABEL} characters between dots`);
  }
  if (LABEL.length + name.length > LONGEST_NAME) {
    throw new UsageError(`${OPTION} must have at most ${LONGEST_NAME - LABEL.length} characters`);
  }
  if (isIP(name) !== 0 || !labels.every(isLabel)) throw notADomain();
  return LABEL + name;
}

function asciiName(domain: string): string {
  // The conversion reads its text as the host of a URL: it would cut "a/b" to "a", and decode "%61" to "a".
  if (/[^\p{L}\p{M}\p{N}\p{S}._-]/u.test(domain)) throw notADomain();
  const name = domainToASCII(domain).replace(/\.$/, '');
  // Punycode that stands for nothing is kept as it is by Node 24, and refused by those before.
  if (/(?:^|\.)xn--/.test(name) && /(?:^|\.)xn--/.test(domainToUnicode(name))) throw notADomain();
  return name;
}

/** Letters, digits and inner hyphens, and underscores, which names of services have (RFC 8552). */
function isLabel(label: string): boolean {
  return /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?$/.test(label);
}

function notADomain(): UsageError {
  return new UsageError(`${OPTION} must be a domain name such as api.example.com`);
}

/** The record in the form of a zone file (RFC 1035, section 5.1). */
export function zoneLine(name: string, address: Address): string {
  return `${name}. ${TTL_SECONDS} IN TXT "${address}"`;
}

/** What TXT records say. */
export interface Named {
  /** With checksum, each once. */
  readonly addresses: readonly Address[];
  /** How many entries are no addresses. */
  readonly others: number;
}

/**
 * Reads TXT records: addresses separated by commas, as in ERC-7529, in any case, over any number of records. The strings
 * of one record belong together without anything between them, as in RFC 7208, section 3.3.
 *
 * @param records the strings of each record.
 */
export function readRecords(records: readonly (readonly string[])[]): Named {
  const entries = records
    .flatMap((strings) => strings.join('').split(','))
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  const addresses = entries
    .filter((entry) => /^0x[0-9a-f]{40}$/i.test(entry))
    .map((entry) => checksumAddress(entry.toLowerCase()));
  return { addresses: [...new Set(addresses)], others: entries.length - addresses.length };
}
