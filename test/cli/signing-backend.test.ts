/** Signatures are the same with each arithmetic, and the log names the one that is used. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getBytes, solidityPackedKeccak256, Wallet } from 'ethers';
import { hide } from '../support/hide.ts';
import { encoding, oneApi, serviceFor, TEST_ADDRESS, TEST_KEY } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { folderWith, launch, PROGRAM } from './run.ts';
import { ADDRESS, configText, endpointId, KEY, specifications } from './service-config.ts';
import { postTo, urlOf } from './started.ts';

describe('the arithmetic of signing', { concurrency: 4 }, () => {
  const slow = 'secp256k1 cannot be loaded: signing is several times slower';
  const assertSigned = async (response: Response, id: string, key: string) => {
    const { timestamp, data, signature } = JSON.parse(await response.text());
    const digest = solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [id, timestamp, data]);
    assert.equal(signature, await new Wallet(key).signMessage(getBytes(digest)));
  };

  it("is secp256k1's without anything missing: the log says so, answers are the same", async (t) => {
    const upstream = await upstreamFor(t, { '*': faults.json({ price: 15 }) });
    const service = await serviceFor(t, oneApi(upstream.url, { eth: { encoding } }));
    const said = service.logs.filter(({ message }) => message === `signer ${TEST_ADDRESS}` || message === slow);
    assert.deepEqual(
      said.map(({ fields }) => fields),
      [{ backend: 'secp256k1' }],
    );
    await assertSigned(await service.post('api/eth'), String(service.ids['api/eth']), TEST_KEY);
  });

  it("is ethers's without secp256k1/bindings: the log says so, answers are the same", async (t) => {
    const upstream = await upstreamFor(t, { '/eth': faults.json({ price: 1.5 }) });
    const cwd = await folderWith(t, { 'c.yaml': configText(upstream.url) });
    const words = [...hide('secp256k1/bindings'), PROGRAM, 'start', '-c', 'c.yaml'];
    const running = launch(t, process.execPath, words, { cwd, env: { SERVICE_PRIVATE_KEY: KEY } });
    const [, said] = await running.output(new RegExp(`INFO signer ${ADDRESS} backend=(.*)\\n`));
    assert.equal(said, 'ethers');
    const id = endpointId(specifications(upstream.url).eth);
    await assertSigned(await postTo(await urlOf(running), id), id, KEY);
    const { code, stdout, stderr } = await running.stop();
    assert.deepEqual([code, stderr, stdout.includes(`WARN ${slow}`)], [0, '', true]);
  });
});
