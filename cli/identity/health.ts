import { type Address, checksumAddress, isAddress } from '../../plugins-sdk/lib/eth/hex.ts';
import { createHttpClient } from '../../plugins-sdk/lib/http/client/index.ts';
import { UsageError } from '../arguments.ts';

/** Milliseconds for the whole answer. */
const ANSWER_TIMEOUT_MS = 5000;
/** Bytes; the record takes less than a hundred. */
const LARGEST = 4096;

/** Where a service at this URL tells its signer. @throws UsageError */
export function healthUrl(url: string): string {
  return `${serviceUrl(url)}/health`;
}

/**
 * The URL of a running service without a slash at its end.
 *
 * @param url `http` or `https`; a path is kept, for a service behind a prefix.
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
 * @throws Error when there is no answer in time, or one that tells no address.
 */
export async function signerAt(url: string): Promise<Address> {
  const client = createHttpClient();
  try {
    const { status, body } = await client.request({
      method: 'GET',
      url,
      timeout: ANSWER_TIMEOUT_MS,
      maxBytes: LARGEST,
    });
    if (status !== 200) throw new Error(`${url}: answers with status ${status}, not 200`);
    const node = nodeOf(body.toString());
    if (!isAddress(node))
      throw new Error(`${url}: the answer tells no signer: no JSON object with an address as "node"`);
    return checksumAddress(node);
  } finally {
    await client.close();
  }
}

function nodeOf(text: string): unknown {
  try {
    const record: unknown = JSON.parse(text);
    return typeof record === 'object' && record !== null && 'node' in record ? record.node : undefined;
  } catch {
    return undefined;
  }
}
