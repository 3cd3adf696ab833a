/** A receipt is accepted for its request, and refused for any other. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import canonicalize from 'canonicalize';
import { keccak256, toUtf8Bytes } from 'ethers';
import fc from 'fast-check';
import { type Reason, requestHashOf, verifyResponse } from '../../verify/index.ts';
import { anyCharacter } from '../support/any-character.ts';
import { answerBy, requestHash } from '../support/receipts.ts';
import { accepted, answer, encoded, node, notBy, OTHER, parameters, raw, refusal, stranger, wallet } from './setup.ts';

const { receipt } = answer;

describe('requestHashOf', () => {
  it('hashes the canonical JSON of {"parameters": …}, as other libraries do', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue({ stringUnit: anyCharacter })),
        (given) => {
          const parsed = JSON.parse(JSON.stringify(given));
          const text = canonicalize({ parameters: parsed }) ?? '';
          fc.pre(!/\\ud[89a-f]/.test(text));
          assert.equal(requestHashOf(parsed), keccak256(toUtf8Bytes(text)));
        },
      ),
    );
  });

  it('is the same whatever the order, and another one for a number and its text', () => {
    assert.equal(requestHashOf({ a: 1, b: { d: 2, c: 3 } }), requestHashOf({ b: { c: 3, d: 2 }, a: 1 }));
    assert.notEqual(requestHashOf({ id: 1 }), requestHashOf({ id: '1' }));
    assert.equal(requestHashOf({}), keccak256(toUtf8Bytes('{"parameters":{}}')));
    const special = keccak256(toUtf8Bytes('{"parameters":{"__proto__":"x"}}'));
    assert.equal(requestHashOf(JSON.parse('{"__proto__":"x"}')), special);
  });

  const loosely: (parameters: unknown) => string = requestHashOf as never;
  for (const [what, given] of [
    ['null', null],
    ['a list', []],
    ['text', '{"a":1}'],
  ] as const) {
    it(`throws for ${what}`, () => {
      assert.throws(() => loosely(given), { name: 'TypeError', message: 'parameters must be an object' });
    });
  }

  it('throws for what is no JSON', () => {
    for (const given of [{ a: undefined }, { a: '\ud800' }, { '\ud800': 1 }, { a: Number.NaN }, { a: new Date() }]) {
      assert.throws(() => loosely(given), { name: 'CanonicalJsonError' });
    }
  });
});

describe('verifyResponse with parameters', () => {
  it('accepts an encoded answer with its receipt, and says which request it is of', () => {
    const result = verifyResponse(answer, { node, parameters });
    const { ok, kind, signer, signature, requestHash: hash, receiptSignature } = { ...result, ...accepted(result) };
    assert.deepEqual([ok, kind, signer, signature], [true, 'encoded', node, answer.signature]);
    assert.deepEqual([hash, receiptSignature], [requestHash(parameters), receipt.signature]);
    assert.equal(hash, requestHashOf(parameters));
  });

  it('accepts a raw answer, whose data is the hash that is signed', async () => {
    const body = await answerBy(wallet, raw);
    const result = accepted(verifyResponse(body, { node, parameters }));
    assert.deepEqual([result.kind, result.signedData], ['raw', body.receipt.dataHash]);
  });

  it('accepts any signer that made both signatures, when told so', async () => {
    assert.equal(accepted(verifyResponse(answer, { node: null, parameters })).requestHash, requestHash(parameters));
  });

  it('accepts any parameters, of any timestamp', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
        async (given, timestamp) => {
          const asked = JSON.parse(JSON.stringify(given));
          const body = await answerBy(wallet, { ...encoded, timestamp, parameters: asked });
          assert.equal(accepted(verifyResponse(body, { node, parameters: asked })).requestHash, requestHash(asked));
        },
      ),
      { numRuns: 30 },
    );
  });

  it('accepts hex of either case', () => {
    const upper = (text: string) => `0x${text.slice(2).toUpperCase()}`;
    const shouted = Object.fromEntries(Object.entries(receipt).map(([name, text]) => [name, upper(text)]));
    assert.equal(verifyResponse({ ...answer, receipt: shouted }, { node, parameters }).ok, true);
  });

  it('refuses the answer to other parameters', async () => {
    const other = { symbol: 'DOGEUSD' };
    const doge = await answerBy(wallet, { ...encoded, parameters: other });
    const message = `the response is of the request ${requestHash(other)}, not of ${requestHash(parameters)}`;
    assert.deepEqual(refusal(doge), ['request', message]);
    // Whoever copies the hash that is wanted does not have the signature.
    const relabelled = { ...doge, receipt: { ...doge.receipt, requestHash: receipt.requestHash } };
    assert.deepEqual(refusal(relabelled), ['receipt', notBy(node)]);
  });

  it('refuses the receipt of another answer', async () => {
    const data = await answerBy(wallet, { ...encoded, content: { data: '0x1235' } });
    const later = await answerBy(wallet, { ...encoded, timestamp: encoded.timestamp + 1 });
    const elsewhere = await answerBy(wallet, { ...encoded, endpointId: keccak256('0x') });
    assert.deepEqual(refusal({ ...answer, receipt: data.receipt }), ['receipt', 'the receipt is of other data']);
    assert.deepEqual(refusal({ ...answer, receipt: later.receipt }), ['receipt', notBy(node)]);
    assert.deepEqual(refusal({ ...answer, receipt: elsewhere.receipt }), ['receipt', notBy(node)]);
  });

  it('refuses the receipt of another signer', async () => {
    const { receipt: forged } = await answerBy(stranger, encoded);
    assert.deepEqual(refusal({ ...answer, receipt: forged }), ['receipt', notBy(node)]);
    assert.deepEqual(refusal({ ...answer, receipt: forged }, { node: null, parameters }), ['receipt', notBy(node)]);
  });

  it('refuses the signature of the answer as that of its receipt', () => {
    const swapped = { ...answer, receipt: { ...receipt, signature: answer.signature } };
    assert.deepEqual(refusal(swapped), ['receipt', notBy(node)]);
  });

  it('looks at the receipt last', () => {
    const bare = { ...answer, receipt: undefined };
    assert.equal(refusal(bare, { node: OTHER, parameters })[0], 'node');
    assert.equal(refusal(bare, { node, parameters, endpointId: keccak256('0x') })[0], 'endpoint');
    assert.equal(refusal(bare, { node, parameters, maxAge: 1 })[0], 'too-old');
  });

  const missing = 'the response has no receipt that tells what was asked';
  const hashes = 'receipt must hold requestHash and dataHash: 0x and 64 hex digits each';
  const bytes = 'the signature of the receipt must be 65 bytes: 0x and 130 hex digits';
  const invalid = 'the signature of the receipt is not valid: ';
  const { signature } = receipt;
  const wrong: [string, unknown, Reason, string][] = [
    ['no receipt', undefined, 'receipt-missing', missing],
    ['null', null, 'malformed', hashes],
    ['a text', 'receipt', 'malformed', hashes],
    ['a list', [receipt], 'malformed', hashes],
    ['no request hash', { ...receipt, requestHash: undefined }, 'malformed', hashes],
    ['a short request hash', { ...receipt, requestHash: '0x12' }, 'malformed', hashes],
    ['a data hash that is a number', { ...receipt, dataHash: 1 }, 'malformed', hashes],
    ['inherited hashes', Object.create(receipt), 'malformed', hashes],
    ['no signature', { ...receipt, signature: undefined }, 'receipt-missing', `the response has no receipt by ${node}`],
    ['half a signature', { ...receipt, signature: signature.slice(0, 66) }, 'malformed', bytes],
    ['a signature that is an object', { ...receipt, signature: {} }, 'malformed', bytes],
    [
      'a bare recovery id',
      { ...receipt, signature: `${signature.slice(0, -2)}00` },
      'receipt',
      `${invalid}its v must be 27 or 28`,
    ],
    [
      'no point of the curve',
      { ...receipt, signature: `0x${'00'.repeat(64)}1b` },
      'receipt',
      `${invalid}it belongs to no public key`,
    ],
  ];
  for (const [what, value, reason, message] of wrong) {
    it(`refuses: ${what}`, () => assert.deepEqual(refusal({ ...answer, receipt: value }), [reason, message]));
  }

  it('never looks at a receipt without the option', () => {
    const before = verifyResponse({ ...answer, receipt: undefined }, { node });
    for (const value of [null, 'x', { requestHash: 1 }, receipt]) {
      assert.deepEqual(verifyResponse({ ...answer, receipt: value }, { node }), before);
    }
    assert.deepEqual(Object.keys(before).includes('requestHash'), false);
  });

  const json = 'wrong options: parameters must hold JSON values: ';
  const options: [string, unknown, string][] = [
    ['undefined', undefined, 'wrong options: parameters must be an object'],
    ['null', null, 'wrong options: parameters must be an object'],
    ['a list', [], 'wrong options: parameters must be an object'],
    ['a text', '{}', 'wrong options: parameters must be an object'],
    ['a value that is undefined', { a: undefined }, `${json}a value of type undefined cannot be written as JSON`],
    ['a lone surrogate', { a: '\udc00' }, `${json}a string with a lone surrogate has no canonical JSON (RFC 8785)`],
  ];
  const loosely: (response: unknown, options: unknown) => unknown = verifyResponse as never;
  for (const [what, value, message] of options) {
    it(`takes no parameters that are ${what}`, () => {
      const refused = { ok: false, reason: 'options', message };
      assert.deepEqual(loosely(answer, { node, parameters: value }), refused);
    });
  }
});
