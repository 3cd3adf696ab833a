/** A relayer that hangs costs its timeout, and the next encryption succeeds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { generateToyKeys } from './keys.ts';
import { paths } from './relayer.ts';
import { fheFor, reasons } from './service.ts';

/** Milliseconds: enough for all workers at once to encrypt on a busy machine. */
const TIMEOUT = 90_000;
const LATE = /^not encrypted within 90000 ms$/;

describe('a relayer that hangs costs `settings.fhe.timeout`, and the next encryption succeeds', {
  concurrency: 6,
}, async () => {
  const keys = generateToyKeys();
  const upstream = await upstreamFor(suite, { '/small': faults.json({ v: 200 }) });

  for (const { step, path, fault, reason = LATE } of [
    { step: 'where the keys are named', path: paths.keyUrl, fault: faults.hang() },
    { step: 'in the middle of the reference string', path: paths.crs, fault: faults.hangAfterHeaders() },
    { step: 'when the proof is submitted', path: paths.submit, fault: faults.hang() },
    { step: 'when the result is fetched', path: paths.result, fault: faults.hangAfterHeaders() },
    {
      step: 'at the node of the host chain, where a call has a shorter timeout of its own',
      path: paths.rpc,
      fault: faults.hang(),
      reason: /^connecting to the relayer: settings\.fhe\.rpcUrl, eth_chainId: timeout: .+ 10000 ms$/,
    },
  ]) {
    it(step, async (t) => {
      const { relayer, service } = await fheFor(t, upstream, { keys }, { fhe: { timeout: TIMEOUT } });
      relayer.upstream.on(path, fault);
      await assertRefused(await service.post('api/small'), 502, 'FHE encryption failed');
      const [why] = reasons(service);
      assert.match(String(why), reason);
      const came = relayer.upstream.requests.some((request) => request.path === path);
      assert.ok(came, 'the worker came to the step');
      // The worker was ended, and its sockets with it.
      await relayer.upstream.untilIdle();
      relayer.behave();
      assert.equal((await service.post('api/small')).status, 200);
    });
  }
});
