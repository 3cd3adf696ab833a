/** An encrypted answer is a signed ciphertext of its value, bound to its consumer. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { submitted as accepted, finished } from '../support/async.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { verifyReceipt } from '../support/receipts.ts';
import { TEST_ADDRESS } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { decrypt } from './decrypt.ts';
import { generateToyKeys } from './keys.ts';
import { decodeEncrypted, handleOf, paths } from './relayer.ts';
import { API_KEY, CONSUMER, fheFor, reasons, VERIFIER } from './service.ts';

describe('an encrypted answer, with the real SDK on a lattice that is too small to protect anything', async () => {
  const keys = generateToyKeys();
  const upstream = await upstreamFor(suite);
  const { relayer, service } = await fheFor(suite, upstream, { keys, signers: 3, threshold: 2 });

  const submitted = () => {
    const last = relayer.submissions.at(-1);
    assert.ok(last);
    return last;
  };
  const plaintext = () => decrypt(Buffer.from(submitted().ciphertextWithInputVerification, 'hex'), keys, 8);

  it('is `abi.encode(bytes32 handle, bytes inputProof)` of a ciphertext of the value, and is signed', async () => {
    upstream.json('/small', { v: 201 });
    const { data } = await verifyEncoded(await service.post('api/small'), TEST_ADDRESS);
    const { handle, inputProof } = decodeEncrypted(data);
    assert.equal(plaintext(), 201n);
    assert.equal(handle, handleOf(submitted()));
    const { signatures } = await relayer.judge(submitted());
    const hex = (text: string) => text.slice(2);
    assert.equal(inputProof, `0x0103${hex(handle)}${signatures.map(hex).join('')}00`);
  });

  it('leaves answers of other endpoints as they are', async () => {
    upstream.json('/plain', { v: 5 });
    const { data } = await verifyEncoded(await service.post('api/plain'), TEST_ADDRESS);
    assert.equal(BigInt(data), 5n);
    assert.equal(relayer.submissions.length, 1);
  });

  it('has a receipt of what was encrypted and signed, where receipts are made', async () => {
    upstream.json('/receipted', { v: 7 });
    await verifyReceipt(await service.post('api/receipted', { q: 'x' }), { q: 'x' }, TEST_ADDRESS);
    assert.equal(plaintext(), 7n);
  });

  it('is bound to the consumer and to `verifier`, on Sepolia', () => {
    const { contractAddress, userAddress, contractChainId, extraData } = submitted();
    assert.deepEqual(
      { contractAddress, userAddress, contractChainId: BigInt(contractChainId), extraData },
      { contractAddress: CONSUMER, userAddress: VERIFIER, contractChainId: 11_155_111n, extraData: '0x00' },
    );
  });

  it('takes the API key to the relayer and to nobody else', () => {
    const withKey = relayer.upstream.requests.filter(({ headers }) => headers['x-api-key'] === API_KEY);
    assert.deepEqual(new Set(withKey.map(({ path }) => path)), new Set([paths.keyUrl, paths.submit, paths.result]));
    const others = relayer.upstream.requests.filter((request) => !withKey.includes(request));
    assert.ok(!JSON.stringify(others).includes(API_KEY));
  });

  it('can hold the smallest and the largest value of its type, signed or not', async () => {
    for (const [name, value] of [
      ['small', 255],
      ['signed', 0],
    ] as const) {
      upstream.json(`/${name}`, { v: value });
      assert.equal((await service.post(`api/${name}`)).status, 200);
      assert.equal(plaintext(), BigInt(value));
    }
  });

  it('needs the keys only once', () => {
    assert.equal(relayer.upstream.requests.filter(({ path }) => path === paths.keyUrl).length, 1);
  });

  it('comes in async mode too', async () => {
    upstream.json('/later', { v: 7 });
    const record = await finished(service, await accepted(await service.post('api/later')));
    assert.equal(record.status, 'complete');
    assert.equal(plaintext(), 7n);
    assert.equal(decodeEncrypted(String(record.data)).handle, handleOf(submitted()));
  });

  it('comes from the cache as it was, and costs no encryption then', async () => {
    upstream.json('/kept', { v: 8 });
    const first = await (await service.post('api/kept')).text();
    assert.equal(plaintext(), 8n);
    const before = relayer.submissions.length;
    assert.equal(await (await service.post('api/kept')).text(), first);
    await verifyEncoded(JSON.parse(first), TEST_ADDRESS);
    assert.equal(relayer.submissions.length, before);
  });

  it('comes in the frame of a stream', async () => {
    upstream.json('/event', { v: 9 });
    const frame = await (await service.post('api/event')).text();
    const { done, ...signed } = JSON.parse(frame.slice('data: '.length));
    await verifyEncoded(signed, TEST_ADDRESS);
    assert.deepEqual([done, plaintext(), decodeEncrypted(signed.data).handle], [true, 9n, handleOf(submitted())]);
  });

  it('is refused before any worker is asked where the value does not fit: 502 `FHE encryption failed`', async () => {
    const before = relayer.submissions.length;
    const log = service.logs.length;
    for (const [name, value] of [
      ['small', 256],
      ['signed', -1],
      ['signed', 256],
      ['middle', '18446744073709551616'],
      ['event', 256],
    ] as const) {
      upstream.text(`/${name}`, `{"v":${value}}`);
      await assertRefused(await service.post(`api/${name}`), 502, 'FHE encryption failed');
    }
    assert.deepEqual(reasons(service), [
      'the encoded value does not fit euint8',
      'the encoded value is negative',
      'the encoded value does not fit euint8',
      'the encoded value does not fit euint64',
      'the encoded value does not fit euint8',
    ]);
    assert.equal(relayer.submissions.length, before);
    // The value would have become a secret.
    assert.ok(!JSON.stringify(service.logs.slice(log)).includes('18446744073709551616'));
  });
});
