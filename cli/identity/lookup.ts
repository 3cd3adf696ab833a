import { Resolver, resolveTxt } from 'node:dns/promises';
import { isIP } from 'node:net';
import { withTimeout } from '../../lib/time/with-timeout.ts';
import { UsageError } from '../arguments.ts';

/** Milliseconds for a lookup, retries included. */
const LOOKUP_TIMEOUT_MS = 5000;

/** What the codes of c-ares mean to somebody who looks for a record. */
const EXPLANATIONS = new Map([
  ['ENOTFOUND', 'there is no such name (NXDOMAIN)'],
  ['ENODATA', 'the name has no TXT record'],
  ['ESERVFAIL', 'the resolver failed (SERVFAIL): the name servers of the domain, or its DNSSEC, do not work'],
  ['EREFUSED', 'the resolver refuses to answer (REFUSED)'],
  ['ECONNREFUSED', 'the resolver cannot be reached (ECONNREFUSED)'],
  ['EBADRESP', 'the answer is malformed (EBADRESP)'],
]);

/** Who is asked. */
export interface NameServer {
  /** How to call it in texts. */
  readonly label: string;
  /** IP address and port; without one the resolver of the system is asked. */
  readonly address?: string;
}

/**
 * Reads `--resolver`: an IP address, with a port unless it is 53; an IPv6 address with a port stands in brackets.
 *
 * @throws UsageError
 */
export function readNameServer(text: string | undefined): NameServer {
  if (text === undefined) return { label: 'system resolver' };
  const [, bracketed, plain, port = '53'] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = isIP(text) === 6 ? text : (bracketed ?? plain ?? '');
  const family = isIP(host);
  if (family === 0 || (bracketed !== undefined && family !== 6) || Number(port) < 1 || Number(port) > 65_535) {
    throw new UsageError('option --resolver <ip:port> must be an IP address, with a port unless it is 53');
  }
  const address = `${family === 6 ? `[${host}]` : host}:${port}`;
  return { label: `resolver ${address}`, address };
}

/**
 * The strings of every TXT record of a name.
 *
 * @throws Error which names the name, and says why there are none.
 */
export function lookUpTxt(name: string, { address }: NameServer): Promise<string[][]> {
  return withTimeout(LOOKUP_TIMEOUT_MS, ask(name, address), () => {
    throw new Error(`${name}: no answer within ${LOOKUP_TIMEOUT_MS} ms`);
  });
}

async function ask(name: string, address: string | undefined): Promise<string[][]> {
  try {
    if (address === undefined) return await resolveTxt(name);
    const resolver = new Resolver();
    resolver.setServers([address]);
    return await resolver.resolveTxt(name);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw new Error(`${name}: ${EXPLANATIONS.get(code) ?? `the lookup failed (${code})`}`);
  }
}
