import assert from 'node:assert/strict';
import { keccak256, solidityPackedKeccak256, toUtf8Bytes, Wallet } from 'ethers';
import { type Reason, type VerifyOptions, verifyResponse } from '../../verify/index.ts';
import type { Lifetime } from '../support/lifetime.ts';
import { answerBy } from '../support/receipts.ts';
import { served } from '../support/served.ts';

export const OTHER = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
export const wallet = new Wallet(`0x${'11'.repeat(32)}`);
export const next = new Wallet(`0x${'22'.repeat(32)}`);
export const stranger = new Wallet(`0x${'33'.repeat(32)}`);
export const node = wallet.address;
export const endpointId = keccak256(toUtf8Bytes('an endpoint'));
export const SIGNED_AT = 1_767_225_600;
export const parameters = { symbol: 'ETHUSD' };
export const encoded = { endpointId, timestamp: SIGNED_AT, content: { data: '0x1234' }, parameters };
export const raw = { ...encoded, content: { rawData: { b: 1, a: ['ü', null] } } };
/** The answer of `wallet`, with its receipt. */
export const answer = await answerBy(wallet, encoded);

/** What throws when its node is read. */
export const throwing = {
  get node(): string {
    throw new Error('no');
  },
};

export function digestOf(timestamp: number, data: string, id = endpointId): string {
  return solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [id, timestamp, data]);
}

/** The refusal of what is given. */
export function refusal(response: unknown, options: VerifyOptions = { node, parameters }): [Reason, string] {
  const result = verifyResponse(response, options);
  assert.ok(!result.ok, 'it was accepted');
  assert.deepEqual(Object.keys(result), ['ok', 'reason', 'message']);
  return [result.reason, result.message];
}

export function accepted(result: ReturnType<typeof verifyResponse>) {
  assert.ok(result.ok, JSON.stringify(result));
  return result;
}

export function notBy(address: string): string {
  return `the receipt is not by ${address}, or not of this response, or it was changed`;
}

/** The value that an encoded answer of that service signs, and the text of its raw answers. */
export const WORD = `0x${1_500_000_000_000_000_000n.toString(16).padStart(64, '0')}`;
export const JSON_TEXT = '{"__proto__":1e+21,"b":[null,"ü"],"price":"1.5"}';

/** A service with an endpoint for each kind of answer. */
export async function everyKind(lifetime: Lifetime) {
  const encoding = { type: 'int256', path: '$.price', times: '1e18' };
  const kinds = {
    ...{ encoded: { encoding }, raw: {} },
    ...{ stream: { mode: 'stream' }, framed: { encoding, mode: 'stream' } },
    ...{ async: { encoding, mode: 'async' }, kept: { mode: 'async' } },
  };
  const text = '{"price":"1.5","b":[null,"ü"],"__proto__":1e21}';
  return (await served(lifetime, kinds, { answers: { '*': (_req, res) => void res.end(text) } })).service;
}
