import assert from 'node:assert/strict';
import canonicalize from 'canonicalize';
import { getBytes, keccak256, solidityPackedKeccak256, toUtf8Bytes, verifyTypedData, type Wallet } from 'ethers';
import { type Verification, verifyResponse } from '../../verify/index.ts';
import { type SignedBody, stable, verifyEncoded, verifyRaw } from './verify.ts';

/** As the issue words them; `ethers` and `canonicalize` know nothing of the service. */
export const RECEIPT_DOMAIN = { name: 'Signed Data Receipt', version: '1' };
export const RECEIPT_TYPES = {
  Receipt: [
    { name: 'endpointId', type: 'bytes32' },
    { name: 'requestHash', type: 'bytes32' },
    { name: 'dataHash', type: 'bytes32' },
    { name: 'timestamp', type: 'uint256' },
  ],
};

export type Asked = Readonly<Record<string, unknown>>;
type Content = { readonly data: string } | { readonly rawData: unknown };

export interface ReceiptBody {
  readonly requestHash: string;
  readonly dataHash: string;
  readonly signature: string;
}

export interface AnswerWithReceipt extends SignedBody {
  readonly receipt: ReceiptBody;
}

/** keccak256 of the canonical JSON of `{"parameters": …}`. */
export function requestHash(parameters: Asked): string {
  return keccak256(toUtf8Bytes(canonicalize({ parameters }) ?? ''));
}

/** The `bytes data` that is signed, and what a receipt says of it. */
function hashesOf(content: Content): { readonly signed: string; readonly dataHash: string } {
  if ('data' in content) return { signed: content.data, dataHash: keccak256(content.data) };
  const signed = keccak256(toUtf8Bytes(stable(content.rawData)));
  return { signed, dataHash: signed };
}

export interface Unsigned {
  readonly endpointId: string;
  readonly timestamp: number;
  readonly content: Content;
  readonly parameters: Asked;
}

/** What a service with that key would sign of an answer and its receipt. */
export async function signaturesBy(wallet: Wallet, { endpointId, timestamp, content, parameters }: Unsigned) {
  const { signed, dataHash } = hashesOf(content);
  const digest = solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [endpointId, timestamp, signed]);
  const receipt = { endpointId, requestHash: requestHash(parameters), dataHash, timestamp };
  return {
    node: wallet.address,
    signature: await wallet.signMessage(getBytes(digest)),
    receiptSignature: await wallet.signTypedData(RECEIPT_DOMAIN, RECEIPT_TYPES, receipt),
  };
}

/** The answer of a service with that key. */
export async function answerBy(wallet: Wallet, unsigned: Unsigned): Promise<AnswerWithReceipt> {
  const { endpointId, timestamp, content, parameters } = unsigned;
  const { node, signature, receiptSignature } = await signaturesBy(wallet, unsigned);
  const { dataHash } = hashesOf(content);
  const receipt = { requestHash: requestHash(parameters), dataHash, signature: receiptSignature };
  return { node, endpointId, timestamp, ...content, signature, receipt };
}

/**
 * Verifies an answer and its receipt with ethers, and with the verification module.
 * @param answer a `Response` (200) or the parsed body of one.
 * @returns the body.
 */
export async function verifyReceipt(answer: unknown, parameters: Asked, address: string): Promise<AnswerWithReceipt> {
  const body = answer instanceof Response ? JSON.parse(await answer.text()) : answer;
  const isRaw = 'rawData' in body;
  const { endpointId, timestamp, ...content } = await (isRaw ? verifyRaw : verifyEncoded)(body, address);
  const { receipt } = body;
  assert.deepEqual(Object.keys(receipt), ['requestHash', 'dataHash', 'signature']);
  const expected = { requestHash: requestHash(parameters), dataHash: hashesOf(content).dataHash };
  assert.deepEqual({ requestHash: receipt.requestHash, dataHash: receipt.dataHash }, expected);
  const message = { endpointId, ...expected, timestamp };
  assert.equal(verifyTypedData(RECEIPT_DOMAIN, RECEIPT_TYPES, message, receipt.signature), address);
  const result: Verification = verifyResponse(body, { node: address, endpointId, parameters });
  assert.ok(result.ok, JSON.stringify(result));
  assert.deepEqual([result.requestHash, result.receiptSignature], [expected.requestHash, receipt.signature]);
  return body;
}
