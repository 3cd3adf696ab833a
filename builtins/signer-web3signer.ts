import { addressOfPublicKey } from '../lib/eth/eip191.ts';
import type { BoundedRequest } from '../lib/http/client/request.ts';
import type { HttpTarget } from '../lib/http/target.ts';
import { jsonIn } from '../lib/json/value.ts';
import { LONGEST_TIMER } from '../plugins-sdk/config.ts';
import { type HttpClient, RequestFailure, toBytes, toHex } from '../plugins-sdk/index.ts';
import { type Address, normalizedSignature, type OpenSigner } from '../plugins-sdk/signing.ts';
import { httpSigners } from './shared/http-signer.ts';

/** A public key as web3signer lists it: x and y in hex, without the 04 of SEC 1. */
const PUBLIC_KEY = /^0x[0-9a-f]{128}$/i;
/** Timeout of the request for the list of keys, in milliseconds. */
const KEY_LIST_TIMEOUT_MS = 10_000;
/** Most bytes of the list of keys: some thirty thousand. */
const LONGEST_LIST = 4 * 1024 * 1024;
/** Most bytes of an answer: a signature has 132. */
const LARGEST_ANSWER = 1024;

interface Question extends Omit<BoundedRequest, 'url' | 'headers'> {
  /** Path below the configured URL. */
  readonly path: string;
}

/** What the statuses mean in web3signer's description of its API (OpenAPI, eth1). */
const MEANINGS = new Map([
  [400, 'it could not read the request'],
  [401, 'it wants credentials: see headers'],
  [403, 'it refuses this host: see its --http-host-allowlist'],
  [404, 'there is no such key, or it does not run as eth1'],
]);

/** Sends a request. @throws Error that shows neither the path of the URL nor a text of the server. */
async function ask(client: HttpClient, { url, headers }: HttpTarget, { path, ...question }: Question): Promise<string> {
  const target = new URL(url);
  target.pathname = `${target.pathname.replace(/\/$/, '')}/api/v1/eth1/${path}`;
  const media = { 'content-type': 'application/json', accept: 'application/json, text/plain' };
  try {
    const { status, body } = await client.request({ ...question, url: target, headers: { ...media, ...headers } });
    if (status === 200) return body.toString('utf8');
    const meaning = MEANINGS.get(status);
    throw new Error(`HTTP status ${status}${meaning === undefined ? '' : `: ${meaning}`}`);
  } catch (error) {
    throw error instanceof RequestFailure ? new Error(`${error.kind}: ${error.message}`) : error;
  }
}

function parseKeys(text: string): string[] {
  const keys = jsonIn(text);
  if (!Array.isArray(keys)) throw new Error('the list of keys is no JSON array');
  return keys.filter((key): key is string => typeof key === 'string' && PUBLIC_KEY.test(key));
}

const addressOf = (key: string) => addressOfPublicKey(toBytes(`0x04${key.slice(2)}`));

/** Finds web3signer's name for the key of an address: the public key, as it lists it. @throws Error that names the setting. */
async function identifierOf(client: HttpClient, target: HttpTarget, address: Address): Promise<string> {
  const list = { method: 'GET', path: 'publicKeys', timeout: KEY_LIST_TIMEOUT_MS, maxBytes: LONGEST_LIST };
  const keys = await ask(client, target, list)
    .then(parseKeys)
    .catch((error: unknown) => {
      throw new Error(`url: ${error instanceof Error ? error.message : error}`);
    });
  const identifier = keys.find((key) => addressOf(key) === address);
  if (identifier === undefined) throw new Error(`address: none of the ${keys.length} keys there is that of ${address}`);
  return identifier;
}

async function connect(client: HttpClient, target: HttpTarget, address: Address): Promise<OpenSigner['sign']> {
  const path = `sign/${await identifierOf(client, target, address)}`;
  const limits = { timeout: LONGEST_TIMER, maxBytes: LARGEST_ANSWER };
  return async (statement, signal) => {
    // web3signer signs the keccak256 of `data`.
    const body = JSON.stringify({ data: toHex(statement.preimage()) });
    const text = await ask(client, target, { method: 'POST', path, body, ...limits, signal });
    return normalizedSignature(text.trim());
  };
}

/** Signs through Consensys' web3signer, whichever vault keeps its keys. */
export const signerWeb3signer = httpSigners('signer-web3signer', 'web3signer', connect);
