/** Signatures are the same with each arithmetic, and the log names the one that is used. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getBytes, solidityPackedKeccak256, Wallet } from 'ethers';
import { hide } from '../support/hide.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { folderWith, launch, PROGRAM } from './run.ts';
import { ADDRESS, configText, endpointId, KEY, specifications } from './service-config.ts';
import { postTo, urlOf } from './started.ts';

describe('the arithmetic of signing', { concurrency: 4 }, () => {
  const slow = 'WARN secp256k1 cannot be loaded: signing is several times slower';
  const cases: [string, string[], boolean][] = [
    ['secp256k1', [], false],
    ['ethers', ['secp256k1/bindings'], true],
  ];
  for (const [backend, hidden, warns] of cases) {
    it(`is ${backend}'s without ${hidden.join(' and ') || 'anything missing'}: the log says so, answers are the same`, async (t) => {
      const upstream = await upstreamFor(t, { '/eth': faults.json({ price: 1.5 }) });
      const cwd = await folderWith(t, { 'c.yaml': configText(upstream.url) });
      const words = [...hide(...hidden), PROGRAM, 'start', '-c', 'c.yaml'];
      const running = launch(t, process.execPath, words, { cwd, env: { SERVICE_PRIVATE_KEY: KEY } });
      const [, said] = await running.output(new RegExp(`INFO signer ${ADDRESS} backend=(.*)\\n`));
      assert.equal(said, backend);
      const id = endpointId(specifications(upstream.url).eth);
      const response = await postTo(await urlOf(running), id);
      const { timestamp, data, signature } = JSON.parse(await response.text());
      const digest = solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [id, timestamp, data]);
      assert.equal(signature, await new Wallet(KEY).signMessage(getBytes(digest)));
      const { code, stdout, stderr } = await running.stop();
      assert.deepEqual([code, stderr, stdout.includes(slow)], [0, '', warns]);
    });
  }
});
