/** Each answer is signed by the service's key, over its content, endpoint and time. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import canonicalize from 'canonicalize';
import { getBytes, keccak256, recoverAddress, solidityPackedKeccak256, toUtf8Bytes, verifyMessage } from 'ethers';
import fc from 'fast-check';
import { anyCharacter } from '../support/any-character.ts';
import { suite } from '../support/lifetime.ts';
import { oneApi, serviceFor, TEST_ADDRESS, TEST_KEY } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { stable, verifyEncoded, verifyRaw } from '../support/verify.ts';

const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;
/** Of endpoint, timestamp and the bytes that are signed. */
const digestOf = (...signed: unknown[]) => solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], signed);

describe('signed answers', async () => {
  let answer = '{"v":1}';
  const upstream = await upstreamFor(suite);
  upstream.on('*', (req, res, recorded) => faults.text(answer)(req, res, recorded));
  upstream.on('/empty', faults.empty(204));
  const endpoints = { encoded: { encoding: { type: 'string', path: '$.v' } }, raw: {}, empty: {} };
  // A busy machine takes its time for the largest documents.
  const settings = { plugins: [{ source: 'builtin:encode-raw', timeout: 60_000 }] };
  const service = await serviceFor(suite, oneApi(upstream.url, endpoints, { settings }));

  const bodyOf = async (endpoint: string, text: string) => {
    answer = text;
    const response = await service.post(`api/${endpoint}`);
    const body = await response.text();
    assert.equal(response.status, 200, body);
    assert.equal(response.headers.get('content-type')?.split(';')[0], 'application/json');
    return JSON.parse(body);
  };

  it('an encoded answer has exactly node, endpointId, timestamp, data and signature', async () => {
    const before = Math.floor(Date.now() / 1000);
    const body = await bodyOf('encoded', '{"v":"x"}');
    assert.deepEqual(Object.keys(body), ['node', 'endpointId', 'timestamp', 'data', 'signature']);
    assert.equal(body.node, TEST_ADDRESS);
    assert.equal(body.endpointId, service.ids['api/encoded']);
    assert.ok(body.timestamp >= before && body.timestamp <= Math.floor(Date.now() / 1000), 'unix seconds at signing');
    assert.match(body.signature, /^0x[0-9a-f]{130}$/);
    await verifyEncoded(body, TEST_ADDRESS);
  });

  it('a raw answer has rawData in place of data', async () => {
    const body = await bodyOf('raw', '{"v":"x"}');
    assert.deepEqual(Object.keys(body), ['node', 'endpointId', 'timestamp', 'rawData', 'signature']);
    assert.equal(body.endpointId, service.ids['api/raw']);
    await verifyRaw(body, TEST_ADDRESS);
  });

  it('the digest is keccak256(encodePacked(bytes32 endpointId, uint256 timestamp, bytes data)), personal-signed', async () => {
    const { endpointId, timestamp, data, signature } = await bodyOf('encoded', '{"v":"x"}');
    const digest = digestOf(endpointId, timestamp, data);
    assert.equal(verifyMessage(getBytes(digest), signature), TEST_ADDRESS);
    assert.notEqual(recoverAddress(digest, signature), TEST_ADDRESS, 'not the bare digest');
    assert.notEqual(verifyMessage(digest, signature), TEST_ADDRESS, 'not its text');
    for (const changed of [
      [endpointId, timestamp + 1, data],
      [`0x${'00'.repeat(32)}`, timestamp, data],
      [endpointId, timestamp, `${data}00`],
    ]) {
      assert.notEqual(verifyMessage(getBytes(digestOf(...changed)), signature), TEST_ADDRESS);
    }
  });

  it('signatures are in the lower half of the order, with v 27 or 28 (EIP-2), as contracts require', async () => {
    for (let i = 0; i < 20; i++) {
      const { signature } = await bodyOf('encoded', `{"v":"${i}"}`);
      assert.ok(BigInt(`0x${signature.slice(66, 130)}`) <= HALF_ORDER);
      assert.ok(['1b', '1c'].includes(signature.slice(130)));
    }
  });

  it('`rawData: null` is signed as the hash of the text `null`', async () => {
    const response = await service.post('api/empty');
    const { endpointId, timestamp, rawData, signature } = JSON.parse(await response.text());
    assert.equal(rawData, null);
    const digest = digestOf(endpointId, timestamp, keccak256(toUtf8Bytes('null')));
    assert.equal(verifyMessage(getBytes(digest), signature), TEST_ADDRESS);
  });

  it('raw answers: who parses and re-serialises them gets the signed text', async () => {
    const documents = [
      '{"b":1,"a":{"d":[3,{"z":0,"y":-0}],"c":null},"":true}',
      '[1.0,1e3,1E-7,0.10,1e21,123456789012345678901234567890,12345678901234567891,4.35,5e-324,-0.0]',
      '{"\\u00e9":1,"e\\u0301":2,"\\ud83d\\ude00":3,"\\ufb33":4,"z":5,"Z":6,"1":7,"10":8,"2":9}',
      '{"__proto__":{"x":1},"constructor":2,"toString":3}',
      '"\\u0000\\u001f\\u007f\\u2028\\"\\\\/\\b\\f\\n\\r\\t"',
      '"\\ud800 alone"',
      ' [ ] ',
      '{"a":1,"a":2}',
      `{"long":"${'ü'.repeat(50_000)}"}`,
    ];
    for (const document of documents) {
      const { rawData } = await verifyRaw(await bodyOf('raw', document), TEST_ADDRESS);
      assert.equal(stable(rawData), stable(JSON.parse(document)), document.slice(0, 80));
    }
  });

  it('the signed text is RFC 8785 as an independent implementation writes it', async () => {
    const claim = fc.asyncProperty(fc.jsonValue({ maxDepth: 5, stringUnit: anyCharacter }), async (value) => {
      const { endpointId, timestamp, rawData, signature } = await bodyOf('raw', JSON.stringify(value));
      const digest = digestOf(endpointId, timestamp, keccak256(toUtf8Bytes(canonicalize(rawData) ?? '')));
      assert.equal(verifyMessage(getBytes(digest), signature), TEST_ADDRESS);
    });
    await fc.assert(claim, { numRuns: 40 });
  });

  it('keys are sorted by UTF-16 code units at every level, also in documents that are signed in steps', async () => {
    const key = (i: number) => `${(i * 7919) % 20_011}${i % 3 === 0 ? '\u{1f600}' : '\ufb33'}`;
    const members = Array.from({ length: 20_000 }, (_, i) => [key(i), { b: i, a: [] }] as const);
    const document = JSON.stringify({ z: 1, nested: Object.fromEntries(members), a: 0 });
    const { rawData } = await verifyRaw(await bodyOf('raw', document), TEST_ADDRESS);
    assert.deepEqual(rawData, JSON.parse(document));
  });
});

describe('signers', async () => {
  const upstream = await upstreamFor(suite);
  upstream.json('/e', { v: 1 });

  it("the mnemonic wins over the private key; the address is derived at m/44'/60'/0'/0/0", async (t) => {
    const SERVICE_MNEMONIC = 'test test test test test test test test test test test junk';
    const other = `0x${'11'.repeat(32)}`;
    const cases: [Record<string, string>, string][] = [
      [{ SERVICE_MNEMONIC, SERVICE_PRIVATE_KEY: other }, TEST_ADDRESS],
      [{ SERVICE_MNEMONIC: '', SERVICE_PRIVATE_KEY: other }, '0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A'],
      [{ SERVICE_PRIVATE_KEY: TEST_KEY.slice(2) }, TEST_ADDRESS],
    ];
    const ids = new Set<string | undefined>();
    for (const [env, address] of cases) {
      const service = await serviceFor(t, oneApi(upstream.url, { e: {} }), { env });
      await verifyRaw(await service.post('api/e'), address);
      assert.equal(service.signer.address, address);
      const both = 'SERVICE_MNEMONIC and SERVICE_PRIVATE_KEY are both set: the mnemonic wins';
      const warned = service.logs.some(({ level, message }) => level === 'warn' && message === both);
      assert.equal(warned, Boolean(env.SERVICE_MNEMONIC));
      ids.add(service.ids['api/e']);
    }
    assert.equal(ids.size, 1, 'another key changes no endpoint ID');
  });
});
