import { Resolver, resolveTxt } from 'node:dns/promises';
import { isIP } from 'node:net';
import { withTimeout } from '../../lib/time.ts';
import { UsageError } from '../arguments.ts';

/** Milliseconds for a lookup, retries included. */
const LOOKUP_TIMEOUT_MS = 5000;

/** Explanations of the codes of c-ares. */
const EXPLANATIONS = new Map([
  ['ENOTFOUND', 'there is no such name (NXDOMAIN)'],
  ['ENODATA', 'the name has no TXT record'],
  ['ESERVFAIL', 'the resolver failed (SERVFAIL): the name servers of the domain, or its DNSSEC, do not work'],
  ['EREFUSED', 'the resolver refuses to answer (REFUSED)'],
  ['ECONNREFUSED', 'the resolver cannot be reached (ECONNREFUSED)'],
  ['EBADRESP', 'the answer is malformed (EBADRESP)'],
]);

/**
 * Reads `--resolver`: an IP address, with a port unless it is 53. An IPv6 address with a port is in brackets.
 *
 * @returns the name of the server in texts, and its address and port; without these the system's resolver is asked.
 * @throws UsageError
 */
export function readNameServer(text: string | undefined) {
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
 * Looks up the strings of all TXT records of a name.
 *
 * @throws Error with the name and the reason, if there are none.
 */
export function lookUpTxt(name: string, address: string | undefined): Promise<string[][]> {
  return withTimeout(LOOKUP_TIMEOUT_MS, ask(name, address), () => {
    throw new Error(`${name}: no answer within ${LOOKUP_TIMEOUT_MS} ms`);
  });
}

async function ask(name: string, address: string | undefined): Promise<string[][]> {
  try {
    // A resolver of its own would not know servers that were set for the process.
    if (address === undefined) return await resolveTxt(name);
    const resolver = new Resolver();
    resolver.setServers([address]);
    return await resolver.resolveTxt(name);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw new Error(`${name}: ${EXPLANATIONS.get(code) ?? `the lookup failed (${code})`}`);
  }
}
