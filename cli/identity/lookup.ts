import { resolveTxt } from 'node:dns/promises';
import { LATE, withTimeout } from '../../lib/time.ts';

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
 * Looks up the strings of all TXT records of a name.
 *
 * @throws Error with the name and the reason, if there are none.
 */
export async function lookUpTxt(name: string): Promise<string[][]> {
  const found = await withTimeout(LOOKUP_TIMEOUT_MS, ask(name));
  if (found === LATE) throw new Error(`${name}: no answer within ${LOOKUP_TIMEOUT_MS} ms`);
  return found;
}

async function ask(name: string): Promise<string[][]> {
  try {
    return await resolveTxt(name);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw new Error(`${name}: ${EXPLANATIONS.get(code) ?? `the lookup failed (${code})`}`);
  }
}
