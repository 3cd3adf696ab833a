import { randomBytes } from 'node:crypto';
import { recoverTextSigner } from '../../lib/eth/eip191.ts';
import { isHex, isSameHex } from '../../lib/eth/hex.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { base64Json, PaymentFault } from './payload.ts';

/** The extension of the protocol, and in lower case the header, by which a wallet shows whose it is. */
export const SIGN_IN = 'sign-in-with-x';

/** What a wallet signs in to. */
export interface SignInTerms {
  /** URL of the endpoint as clients reach it. */
  readonly uri: string;
  /** Chains that may be named, as CAIP-2 does. */
  readonly networks: readonly string[];
}

/** Milliseconds for which a challenge is good, and that clocks of replicas may differ. */
const LIFE_MS = 300_000;
const CLOCK_MARGIN_MS = 60_000;

/** Characters of the header. */
const LONGEST_HEADER = 4096;

const text = { type: 'string' };
const time = { type: 'string', format: 'date-time' };
const uri = { type: 'string', format: 'uri' };

/** What the public library says of the header. */
const schema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: {
    ...{ domain: text, address: text, statement: text, uri, version: text, chainId: text, type: text, nonce: text },
    ...{ issuedAt: time, expirationTime: time, notBefore: time, requestId: text },
    ...{ resources: { type: 'array', items: uri }, signature: text },
  },
  required: ['domain', 'address', 'uri', 'version', 'chainId', 'type', 'nonce', 'issuedAt', 'signature'],
};

function infoOf(url: string, nonce: string, issued: number) {
  const issuedAt = new Date(issued).toISOString();
  const expirationTime = new Date(issued + LIFE_MS).toISOString();
  return { domain: new URL(url).host, uri: url, version: '1', nonce, issuedAt, expirationTime, resources: [url] };
}

/** A challenge to sign, as the server part of the public library makes it. @param now epoch milliseconds. */
export function challengeOf({ uri, networks }: SignInTerms, now: number) {
  return {
    info: infoOf(uri, randomBytes(16).toString('hex'), now),
    supportedChains: networks.map((chainId) => ({ chainId, type: 'eip191' })),
    schema,
  };
}

/** Somebody who has signed a challenge. */
export interface SignedIn {
  readonly address: string;
  readonly nonce: string;
  /** Milliseconds for which the challenge could be used again. */
  readonly life: number;
}

const refused = (what: string) => new PaymentFault(`invalid_siwx_${what}`);

/** What is told to wallets that are contracts: only their chain could say who owns them. */
export const CONTRACT = 'Sign in with an account of its own key: wallets that are contracts cannot sign in';

/**
 * Reads the header and checks what was signed: this challenge of this endpoint, in time. Whether its nonce was used is another question.
 * @param now epoch milliseconds. @throws PaymentFault
 */
export function readSignIn(header: string, terms: SignInTerms, now: number): SignedIn {
  const { domain, uri, chainId, nonce, issuedAt, address, signature } = membersIn(header);
  if (domain !== new URL(terms.uri).host) throw refused('domain_mismatch');
  if (uri !== terms.uri) throw refused('uri_mismatch');
  if (!terms.networks.includes(chainId)) throw refused('unsupported_chain');
  if (!/^[A-Za-z0-9]{8,64}$/.test(nonce)) throw refused('nonce');
  const issued = /^\d{4}-/.test(issuedAt) ? Date.parse(issuedAt) : Number.NaN;
  if (Number.isNaN(issued) || new Date(issued).toISOString() !== issuedAt) throw refused('issued_at');
  if (issued > now + CLOCK_MARGIN_MS) throw refused('issued_at_in_future');
  if (issued + LIFE_MS <= now) throw refused('expired');
  if (!/^0x[0-9a-fA-F]{40}$/.test(address) || !isHex(signature)) throw refused('signature');
  if (signature.length !== 132) throw new PaymentFault(CONTRACT);
  // All else is as it was offered, or the signature is one of another text.
  if (!isSignedBy(address, messageOf(infoOf(uri, nonce, issued), address, chainId), signature))
    throw refused('signature');
  return { address: address.toLowerCase(), nonce, life: issued + LIFE_MS + CLOCK_MARGIN_MS - now };
}

const MEMBERS = ['domain', 'uri', 'chainId', 'nonce', 'issuedAt', 'address', 'signature'] as const;
type Members = Readonly<Record<(typeof MEMBERS)[number], string>>;

function membersIn(header: string): Members {
  let said: unknown;
  try {
    said = base64Json(header, LONGEST_HEADER);
  } catch {
    throw refused('header');
  }
  if (!isRecord(said) || MEMBERS.some((name) => typeof said[name] !== 'string')) throw refused('header');
  return said as Members;
}

/** EIP-4361, without a statement. */
function messageOf(info: ReturnType<typeof infoOf>, address: string, chainId: string): string {
  return [
    `${info.domain} wants you to sign in with your Ethereum account:`,
    ...[address, '', ''],
    `URI: ${info.uri}`,
    `Version: ${info.version}`,
    `Chain ID: ${chainId.slice('eip155:'.length)}`,
    `Nonce: ${info.nonce}`,
    `Issued At: ${info.issuedAt}`,
    `Expiration Time: ${info.expirationTime}`,
    'Resources:',
    ...info.resources.map((resource) => `- ${resource}`),
  ].join('\n');
}

function isSignedBy(address: string, message: string, signature: `0x${string}`): boolean {
  try {
    return isSameHex(recoverTextSigner(message, signature), address);
  } catch {
    return false;
  }
}
