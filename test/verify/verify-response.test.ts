/** An answer of the service is accepted, and any change of it is refused with its reason. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getBytes, keccak256, toUtf8Bytes } from 'ethers';
import fc from 'fast-check';
import { CLOCK_SKEW, type Reason, type VerifyOptions, verifyResponse } from '../../verify/index.ts';
import { anyCharacter } from '../support/any-character.ts';
import { finished, submitted } from '../support/async.ts';
import { suite } from '../support/lifetime.ts';
import { TEST_ADDRESS } from '../support/service.ts';
import { stable } from '../support/verify.ts';
import {
  digestOf,
  everyKind,
  endpointId as ID,
  JSON_TEXT,
  node,
  OTHER,
  refusal as refused,
  SIGNED_AT,
  WORD,
  wallet,
} from './setup.ts';

function hashOf(rawData: unknown): string {
  return keccak256(toUtf8Bytes(stable(rawData)));
}

async function signed<C extends { data: string } | { rawData: unknown }>(content: C, timestamp = SIGNED_AT) {
  const data = 'data' in content ? content.data : hashOf(content.rawData);
  const signature = await wallet.signMessage(getBytes(digestOf(timestamp, data)));
  return { node, endpointId: ID, timestamp, ...content, signature };
}

const answer = await signed({ data: '0x1234' });

const refusal = (response: unknown, options: VerifyOptions = { node: null }) => refused(response, options);

describe('verifyResponse, with what the service sends', async () => {
  const service = await everyKind(suite);

  const assertVerified = (name: string, body: Readonly<Record<string, unknown>>) => {
    const { timestamp, rawData, signature } = body;
    assert.ok(typeof timestamp === 'number');
    const endpointId = service.ids[`api/${name}`] ?? '';
    const isEncoded = name === 'encoded' || name === 'async';
    const signedData = isEncoded ? WORD : hashOf(rawData);
    assert.deepEqual(verifyResponse(body, { node: TEST_ADDRESS, endpointId, maxAge: 60 }), {
      ...{ ok: true, signer: TEST_ADDRESS, pinned: true, endpointId, timestamp, signedData, signature },
      ...(isEncoded ? { kind: 'encoded', data: WORD } : { kind: 'raw', json: JSON_TEXT }),
      digest: digestOf(timestamp, signedData, endpointId),
    });
  };

  it('an encoded answer', async () => {
    assertVerified('encoded', JSON.parse(await (await service.post('api/encoded')).text()));
  });

  it('a raw answer', async () => {
    assertVerified('raw', JSON.parse(await (await service.post('api/raw')).text()));
  });

  it('the body of an SSE frame', async () => {
    const body = JSON.parse((await (await service.post('api/stream')).text()).slice('data: '.length));
    assert.equal(body.done, true);
    assertVerified('stream', body);
  });

  it('a complete async record, and no other', async () => {
    const submission = await submitted(await service.post('api/async'));
    assert.deepEqual(refusal(submission), ['malformed', 'the request is still pending: there is no answer yet']);
    const record = await finished(service, submission);
    assert.equal(record.status, 'complete');
    assertVerified('async', record);
  });
});

describe('verifyResponse accepts', () => {
  it('any signer when told so, and says that none was pinned', () => {
    const result = verifyResponse(answer, { node: null });
    assert.deepEqual([result.ok, result.ok && result.signer, result.ok && result.pinned], [true, node, false]);
  });

  it('hex of either case, in the response and in the options', () => {
    const upper = (text: string) => `0x${text.slice(2).toUpperCase()}`;
    const { endpointId, signature } = answer;
    const shouted = { ...answer, node: upper(node), endpointId: upper(endpointId), signature: upper(signature) };
    for (const response of [shouted, { ...answer, node: node.toLowerCase() }]) {
      for (const pinned of [node, upper(node), node.toLowerCase()]) {
        const result = verifyResponse(response, { node: pinned, endpointId: upper(ID) });
        assert.ok(result.ok, JSON.stringify(result));
        assert.equal(result.signer, node);
      }
    }
  });

  it('whatever stands beside the signed fields', () => {
    const record = { requestId: 'x', status: 'complete', pollUrl: '/requests/x', error: 'none' };
    assert.equal(verifyResponse({ ...answer, ...record, proof: { claim: {} }, done: true }, { node }).ok, true);
  });

  it('an answer that is as old as maxAge allows, and as young as clocks differ', () => {
    const at = (now: number, maxAge: number) => verifyResponse(answer, { node, maxAge, now }).ok;
    assert.deepEqual([at(SIGNED_AT + 30, 30), at(SIGNED_AT, 0), at(SIGNED_AT - CLOCK_SKEW, 0)], [true, true, true]);
    assert.deepEqual(
      [at(SIGNED_AT + 31, 30), at(SIGNED_AT + 1, 0), at(SIGNED_AT - CLOCK_SKEW - 1, 0)],
      [false, false, false],
    );
  });

  it('an answer of any time without maxAge: nothing depends on the clock', async () => {
    for (const timestamp of [0, 1, 4_294_967_296, Number.MAX_SAFE_INTEGER]) {
      const result = verifyResponse(await signed({ data: '0x' }, timestamp), { node });
      assert.equal(result.ok && result.timestamp, timestamp);
    }
  });

  it('any JSON value as rawData, hashed as its canonical text', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ maxDepth: 4, stringUnit: anyCharacter }), async (value) => {
        const rawData: unknown = JSON.parse(JSON.stringify(value));
        const result = verifyResponse(await signed({ rawData }), { node });
        assert.ok(result.ok && result.kind === 'raw');
        assert.deepEqual([result.json, result.signedData], [stable(rawData), hashOf(rawData)]);
      }),
      { numRuns: 50 },
    );
  });
});

describe('verifyResponse refuses', () => {
  const changed = `the signature is not by the node ${node}, or something in the response was changed`;
  const without = (name: keyof typeof answer) => {
    const { [name]: _, ...rest } = answer;
    return rest;
  };
  const shape = 'must be an address: 0x and 40 hex digits';
  const seconds = 'timestamp must be a number of whole Unix seconds';
  const signature = 'signature must be 65 bytes: 0x and 130 hex digits';
  const noObject = 'the response is no object';
  const noData = 'the response has neither data nor rawData';
  const noHex = 'data must be 0x and an even number of hex digits';
  const noText = 'rawData has no canonical JSON text';
  const cases: [string, unknown, Reason, string][] = [
    ['changed data', { ...answer, data: '0x1235' }, 'signer', changed],
    ['a changed timestamp', { ...answer, timestamp: SIGNED_AT - 1 }, 'signer', changed],
    ['a changed endpoint', { ...answer, endpointId: keccak256('0x') }, 'signer', changed],
    ['a changed node', { ...answer, node: OTHER }, 'signer', changed.replace(node, OTHER)],
    ['undefined', undefined, 'malformed', noObject],
    ['null', null, 'malformed', noObject],
    ['text', JSON.stringify(answer), 'malformed', noObject],
    ['a list of one', [answer], 'malformed', noObject],
    ['a function', () => answer, 'malformed', noObject],
    ['an empty object', {}, 'malformed', 'the response has no node and no signature'],
    [
      'an error body',
      { error: 'Server busy' },
      'malformed',
      'the response is an error, not a signed answer: Server busy',
    ],
    ['no node', without('node'), 'malformed', `node ${shape}`],
    ['no signature', without('signature'), 'malformed', signature],
    ['no endpoint', without('endpointId'), 'malformed', 'endpointId must be 0x and 64 hex digits'],
    ['no timestamp', without('timestamp'), 'malformed', seconds],
    ['no data', without('data'), 'malformed', noData],
    ['data and rawData', { ...answer, rawData: null }, 'malformed', 'the response has both data and rawData'],
    ['undefined rawData alone', { ...without('data'), rawData: undefined }, 'malformed', noData],
    ['a node of 19 bytes', { ...answer, node: node.slice(0, -2) }, 'malformed', `node ${shape}`],
    ['a node with a line feed', { ...answer, node: `${node}\n` }, 'malformed', `node ${shape}`],
    ['a node without 0x', { ...answer, node: `00${node.slice(2)}` }, 'malformed', `node ${shape}`],
    ['a timestamp with a fraction', { ...answer, timestamp: SIGNED_AT + 0.5 }, 'malformed', seconds],
    ['a negative timestamp', { ...answer, timestamp: -1 }, 'malformed', seconds],
    ['a timestamp beyond 2^53', { ...answer, timestamp: 2 ** 53 }, 'malformed', seconds],
    ['NaN', { ...answer, timestamp: Number.NaN }, 'malformed', seconds],
    ['a timestamp in text', { ...answer, timestamp: `${SIGNED_AT}` }, 'malformed', seconds],
    ['null as data', { ...answer, data: null }, 'malformed', noHex],
    ['half a byte of data', { ...answer, data: '0x123' }, 'malformed', noHex],
    ['data that is no hex', { ...answer, data: '0x12zz' }, 'malformed', noHex],
    ['64 bytes of signature', { ...answer, signature: answer.signature.slice(0, -2) }, 'malformed', signature],
    ['66 bytes of signature', { ...answer, signature: `${answer.signature}00` }, 'malformed', signature],
    ['inherited fields', Object.create(answer), 'malformed', 'the response has no node and no signature'],
    [
      'a number that JSON lacks',
      { ...without('data'), rawData: [Number.NaN] },
      'raw-data',
      `${noText}: NaN cannot be written as JSON`,
    ],
    [
      'a date',
      { ...without('data'), rawData: new Date(0) },
      'raw-data',
      `${noText}: an object that is neither plain nor an array cannot be written as JSON`,
    ],
  ];
  for (const [what, response, reason, message] of cases) {
    it(what, () => assert.deepEqual(refusal(response), [reason, message]));
  }

  it('changed rawData, down to the type of a number', async () => {
    const response = await signed({ rawData: { a: 1, b: [2] } });
    assert.equal(verifyResponse({ ...response, rawData: { b: [2], a: 1 } }, { node }).ok, true);
    for (const rawData of [{ a: '1', b: [2] }, { a: 1, b: [2, null] }, { a: 1, b: [2], c: null }, null]) {
      assert.deepEqual(refusal({ ...response, rawData }), ['signer', changed]);
    }
  });

  it('rawData that contains itself or is nested too deeply', async () => {
    const rawData: unknown[] = [];
    rawData.push(rawData);
    assert.equal(refusal({ ...without('data'), rawData })[0], 'raw-data');
    const deep: unknown = JSON.parse('['.repeat(50_000) + ']'.repeat(50_000));
    assert.equal(refusal({ ...without('data'), rawData: deep })[0], 'raw-data');
  });

  it('signatures that contracts refuse', () => {
    const order = 0xffff_ffff_ffff_ffff_ffff_ffff_ffff_fffe_baae_dce6_af48_a03b_bfd2_5e8c_d036_4141n;
    const r = answer.signature.slice(2, 66);
    const s = answer.signature.slice(66, 130);
    const v = answer.signature.slice(130);
    const otherV = v === '1b' ? '1c' : '1b';
    const word = (value: bigint) => value.toString(16).padStart(64, '0');
    const is = (text: string) => refusal({ ...answer, signature: `0x${text}` });
    const high = 'the signature is not valid: its s is in the upper half of the curve order (EIP-2)';
    assert.deepEqual(is(r + word(order - BigInt(`0x${s}`)) + otherV), ['signature', high]);
    for (const wrongV of ['00', '01', '1a', '1d', '1f', 'ff']) {
      assert.deepEqual(is(r + s + wrongV), ['signature', 'the signature is not valid: its v must be 27 or 28']);
    }
    const none = 'the signature is not valid: it belongs to no public key';
    for (const [badR, badS] of [
      [word(0n), s],
      [word(order), s],
      [word(5n), s],
      [r, word(0n)],
      [r, word(order)],
      ['f'.repeat(64), 'f'.repeat(64)],
    ]) {
      assert.deepEqual(is(`${badR}${badS}${v}`), ['signature', none]);
    }
    assert.deepEqual(is(r + s + otherV), ['signer', changed]);
  });

  it('another signer, endpoint or time than asked for, each by its reason', () => {
    assert.deepEqual(refusal(answer, { node: OTHER }), ['node', `the response is signed by ${node}, not by ${OTHER}`]);
    const endpointId = keccak256('0x');
    const wrong = `the response is of endpoint ${ID}, not of ${endpointId}`;
    assert.deepEqual(refusal(answer, { node, endpointId }), ['endpoint', wrong]);
    const at = (now: number) => refusal(answer, { node, maxAge: 30, now });
    assert.deepEqual(at(SIGNED_AT + 31), ['too-old', 'the response is 31 seconds old, more than 30']);
    assert.deepEqual(at(SIGNED_AT - 61), ['future', 'the response is of 61 seconds in the future']);
  });

  it('by the clock when no time is given', async () => {
    const now = Math.floor(Date.now() / 1000);
    assert.equal(verifyResponse(await signed({ data: '0x' }, now), { node, maxAge: 600 }).ok, true);
    assert.equal(refusal(await signed({ data: '0x' }, now - 1200), { node, maxAge: 600 })[0], 'too-old');
    assert.equal(refusal(await signed({ data: '0x' }, now + 1200), { node, maxAge: 600 })[0], 'future');
  });
});

describe('verifyResponse refuses options that would leave out a check by mistake', () => {
  // As plain JavaScript may pass them.
  const loosely = (options: unknown): unknown => Reflect.apply(verifyResponse, undefined, [answer, options]);
  const nodes = 'wrong options: node must be an address (with the right checksum, if any), or null for any signer';
  const ids = 'wrong options: endpointId must be 0x and 64 hex digits';
  const ages = 'wrong options: maxAge must be a number of seconds, 0 or more';
  const cases: [string, unknown, string][] = [
    ['none', undefined, 'wrong options: there must be an object of them'],
    ['null', null, 'wrong options: there must be an object of them'],
    ['no node', {}, nodes],
    ['an undefined node', { node: undefined }, nodes],
    ['an empty node', { node: '' }, nodes],
    ['a node with a wrong checksum', { node: node.replace(/[a-f]/, (letter) => letter.toUpperCase()) }, nodes],
    ['a misspelt option', { node, maxage: 5 }, 'wrong options: maxage is none'],
    ['an undefined endpoint', { node, endpointId: undefined }, ids],
    ['a short endpoint', { node, endpointId: '0x12' }, ids],
    ['an undefined age', { node, maxAge: undefined }, ages],
    ['an age in text', { node, maxAge: '60' }, ages],
    ['an age that is no number', { node, maxAge: Number.NaN }, ages],
    ['a negative age', { node, maxAge: -1 }, ages],
    ['an endless age', { node, maxAge: Number.POSITIVE_INFINITY }, ages],
    ['a time in text', { node, maxAge: 60, now: 'now' }, 'wrong options: now must be a number of Unix seconds'],
  ];
  for (const [what, options, message] of cases) {
    it(what, () => assert.deepEqual(loosely(options), { ok: false, reason: 'options', message }));
  }
});
