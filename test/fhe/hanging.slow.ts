/** A relayer that hangs costs its timeout, and the next encryption succeeds. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertRefused } from '../support/http.ts';
import { faults, startUpstream, type Upstream } from '../support/upstream.ts';
import { generateToyKeys, type Keys } from './keys.ts';
import { paths, startRelayer } from './relayer.ts';
import { reasons, startFheService } from './service.ts';

/** Milliseconds: enough for all workers at once to encrypt on a busy machine. */
const TIMEOUT = 90_000;
const LATE = /^not encrypted within 90000 ms$/;

describe('a relayer that hangs costs `settings.fhe.timeout`, and the next encryption succeeds', {
  concurrency: 6,
}, () => {
  let keys: Keys;
  let upstream: Upstream;

  before(async () => {
    keys = generateToyKeys();
    upstream = await startUpstream();
    upstream.json('/small', { v: 200 });
  });
  after(() => upstream.close());

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
    it(step, async () => {
      const relayer = await startRelayer({ keys });
      const service = await startFheService(relayer, upstream, { fhe: { timeout: TIMEOUT } });
      try {
        relayer.upstream.on(path, fault);
        await assertRefused(await service.post('api/small'), 502, 'FHE encryption failed');
        const [why] = reasons(service);
        assert.match(String(why), reason);
        assert.ok(
          relayer.upstream.requests.some((request) => request.path === path),
          'the worker came to the step',
        );
        // The worker was ended, and its sockets with it.
        await relayer.upstream.untilIdle();
        relayer.behave();
        assert.equal((await service.post('api/small')).status, 200);
      } finally {
        await service.stop();
        await relayer.close();
      }
    });
  }
});
