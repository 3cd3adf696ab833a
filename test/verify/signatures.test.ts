/** Answers with signatures of two nodes are accepted by either, while one moves to the next. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { verifyResponse } from '../../verify/index.ts';
import { answerBy, requestHash, signaturesBy } from '../support/receipts.ts';
import {
  accepted,
  answer,
  encoded,
  endpointId,
  next,
  node,
  notBy,
  OTHER,
  parameters,
  raw,
  refusal,
  stranger,
  throwing,
  wallet,
} from './setup.ts';

const { receipt } = answer;

/** An answer by `wallet` with the signatures of others beside. */
async function rotating(unsigned: typeof encoded | typeof raw, ...others: readonly object[]) {
  const main = await answerBy(wallet, unsigned);
  const { node, signature, receiptSignature } = await signaturesBy(wallet, unsigned);
  return { ...main, signatures: [{ node, signature, receiptSignature }, ...others] };
}

describe('verifyResponse with signatures of two nodes', async () => {
  const moving = await rotating(encoded, await signaturesBy(next, encoded));

  it('accepts the node of the answer as ever', () => {
    assert.deepEqual(verifyResponse(moving, { node }), verifyResponse(answer, { node }));
    assert.equal(accepted(verifyResponse(moving, { node: null })).signer, node);
  });

  it('accepts the other one, with what a contract needs', async () => {
    for (const unsigned of [encoded, raw]) {
      const { signature, receiptSignature } = await signaturesBy(next, unsigned);
      const body = await rotating(unsigned, { node: next.address.toLowerCase(), signature, receiptSignature });
      const result = accepted(verifyResponse(body, { node: next.address, endpointId, parameters }));
      assert.deepEqual([result.signer, result.signature], [next.address, signature]);
      assert.deepEqual([result.requestHash, result.receiptSignature], [requestHash(parameters), receiptSignature]);
    }
  });

  it('refuses a node that is not among them', () => {
    const message = `the response is signed by ${node}, not by ${OTHER}`;
    assert.deepEqual(refusal(moving, { node: OTHER }), ['node', message]);
  });

  it('refuses the other one where the answer itself is not signed by its node', () => {
    const changed = { ...moving, signature: moving.signatures[1]?.['signature' as never] };
    assert.equal(refusal(changed, { node: next.address })[0], 'signer');
  });

  it('refuses an entry of which the signature is of something else, or by somebody else', async () => {
    const label = `the signature of ${next.address} in signatures`;
    const changed = `${label} is not by it, or something in the response was changed`;
    const { signature: other } = await signaturesBy(next, { ...encoded, content: { data: '0x1235' } });
    const { signature: foreign } = await signaturesBy(stranger, encoded);
    for (const signature of [other, foreign, answer.signature]) {
      const body = await rotating(encoded, { node: next.address, signature });
      assert.deepEqual(refusal(body, { node: next.address }), ['signer', changed]);
    }
    const body = await rotating(encoded, { node: next.address, signature: `${foreign.slice(0, -2)}00` });
    const invalid = `${label} is not valid: its v must be 27 or 28`;
    assert.deepEqual(refusal(body, { node: next.address }), ['signature', invalid]);
  });

  it('takes the entry that holds among several of one node, and reads no more than 16', async () => {
    const good = await signaturesBy(next, encoded);
    const bad = { ...good, signature: answer.signature };
    assert.equal(verifyResponse(await rotating(encoded, bad, good), { node: next.address }).ok, true);
    const long = await rotating(encoded, ...Array.from({ length: 15 }, () => bad), good);
    assert.equal(refusal(long, { node: next.address })[0], 'signer');
  });

  it('needs the receipt of the node that is asked for', async () => {
    const good = await signaturesBy(next, encoded);
    const options = { node: next.address, parameters };
    const without = await rotating(encoded, { ...good, receiptSignature: undefined });
    assert.deepEqual(refusal(without, options), ['receipt-missing', `the response has no receipt by ${next.address}`]);
    const borrowed = await rotating(encoded, { ...good, receiptSignature: receipt.signature });
    assert.deepEqual(refusal(borrowed, options), ['receipt', notBy(next.address)]);
    const { receiptSignature } = await signaturesBy(next, { ...encoded, parameters: { symbol: 'DOGEUSD' } });
    assert.deepEqual(refusal(await rotating(encoded, { ...good, receiptSignature }), options), [
      'receipt',
      notBy(next.address),
    ]);
    const bare = { ...(await rotating(encoded, good)), receipt: undefined };
    assert.equal(refusal(bare, options)[0], 'receipt-missing');
  });

  it('never throws, whatever shape the list has', async () => {
    const { signature } = await signaturesBy(next, encoded);
    const sparse = new Array(3);
    const lists: unknown[] = [undefined, null, {}, 'x', 7, [], sparse, [null, 1, [], 'x', {}], { length: 1, 0: {} }];
    const entries = [
      { node: next.address },
      { signature },
      { node: 1, signature },
      { node: next.address, signature: `${signature}00` },
      Object.create({ node: next.address, signature }),
    ];
    for (const list of [...lists, entries]) {
      const [reason] = refusal({ ...answer, signatures: list }, { node: next.address });
      assert.equal(reason, 'node', JSON.stringify(list));
    }
    const message = 'the response cannot be read';
    assert.deepEqual(refusal({ ...answer, signatures: [throwing] }, { node: next.address }), ['malformed', message]);
    fc.assert(
      fc.property(fc.anything(), fc.anything(), (list, held) => {
        const body = { ...answer, receipt: held, signatures: list };
        assert.equal(verifyResponse(body, { node: next.address, parameters }).ok, false);
      }),
      { numRuns: 300 },
    );
  });
});
