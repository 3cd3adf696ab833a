import { decodeAbi } from '../../lib/eth/decode-abi.ts';
import { keccak256 } from '../../lib/eth/hex.ts';
import { MAX_JSON_DEPTH } from '../../lib/json/canonical-json.ts';
import { isDeeperThan } from '../../lib/json/json-text.ts';
import { ethers } from '../../lib/process/packages.ts';
import {
  type Hex,
  isHex,
  type Parameters,
  takeParameters,
  toHex,
  withoutRoundedNumbers,
} from '../../plugins-sdk/index.ts';
import { refusals } from './refusals.ts';

const SELECTOR = toHex(keccak256(Buffer.from('ask(bytes32,string)'))).slice(0, 10);

/** A contract's question. */
export type Lookup = ReturnType<typeof lookupOf>;

/** The members of an answer that a contract gets. */
export interface Answer {
  readonly node: Hex;
  readonly endpointId: Hex;
  readonly timestamp: number;
  readonly data: Hex;
  readonly signature: Hex;
  readonly receipt?: { readonly signature: Hex };
}

/** Decodes what a client sent on behalf of a contract; hex digits may have any case. @throws Refusal 400 or 404 */
export function lookupOf(sender: unknown, data: unknown) {
  if (typeof sender !== 'string' || !/^0x[\da-f]{40}$/i.test(sender)) throw refusals.sender();
  const call = typeof data === 'string' ? data.toLowerCase() : data;
  if (!isHex(call)) throw refusals.data();
  if (call.slice(0, 10) !== SELECTOR) throw refusals.selector();
  const [id, text] = decodeAbi(`0x${call.slice(10)}`, 'bytes32,string') ?? [];
  if (id === undefined || text === undefined) throw refusals.call();
  return { endpointId: id.value, parameters: parametersOf(JSON.parse(text.value)) };
}

function parametersOf(text: string): Parameters {
  if (isDeeperThan(text, MAX_JSON_DEPTH)) throw refusals.tooDeep();
  try {
    // A rounded number would be another question, with another signed answer.
    return takeParameters({ parameters: JSON.parse(withoutRoundedNumbers(text)) });
  } catch {
    throw refusals.parameters();
  }
}

const ANSWER = ['address', 'bytes32', 'uint256', 'bytes', 'bytes', 'bytes'];

/** Encodes the members as `abi.encode` does; the last one is empty if the answer has no receipt. */
export function encodeAnswer({ node, endpointId, timestamp, data, signature, receipt }: Answer): string {
  const values = [node, endpointId, timestamp, data, signature, receipt?.signature ?? '0x'];
  return ethers().AbiCoder.defaultAbiCoder().encode(ANSWER, values);
}
