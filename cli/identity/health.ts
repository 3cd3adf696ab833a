import { type Address, checksumAddress, isAddress } from '../../lib/eth/hex.ts';
import { jsonIn } from '../../lib/json/value.ts';
import { UsageError } from '../arguments.ts';
import { httpGet } from '../http-get.ts';

/** The most bytes of the answer; the record has less than a hundred. */
const LARGEST = 4096;

/**
 * Checks the URL of a running service, and returns it without a slash at its end.
 *
 * @param url an `http` or `https` URL; a path is kept, for a service behind a prefix.
 * @throws UsageError
 */
export function serviceUrl(url: string): string {
  const { protocol, username, password, search, hash, href } = URL.canParse(url) ? new URL(url) : new URL('none:');
  const isPlain = username === '' && password === '' && search === '' && hash === '';
  if ((protocol !== 'http:' && protocol !== 'https:') || !isPlain) {
    throw new UsageError('option --url <url> must be the URL of a service such as https://api.example.com');
  }
  return href.replace(/[?#]*$/, '').replace(/\/$/, '');
}

/**
 * Asks a running service for its signer.
 *
 * @throws Error when there is no answer in time, or one without an address.
 */
export async function signerAt(url: string): Promise<Address> {
  const { status, body } = await httpGet(url, LARGEST);
  if (status !== 200) throw new Error(`${url}: answers with status ${status}, not 200`);
  const { node }: { readonly node?: unknown } = Object(jsonIn(body.toString()));
  if (!isAddress(node)) throw new Error(`${url}: the answer tells no signer: no JSON object with an address as "node"`);
  return checksumAddress(node);
}
