/**
 * Answers that are encrypted decrypt to their value, of 256 bits, too. With the variable FHE_KEYS_DIR the parameters are those of the
 * real networks: that folder has their keys, or gets them.
 */

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { Agent, setGlobalDispatcher } from 'undici';
import { leavingFetch } from '../support/leaving-client.ts';
import { suite } from '../support/lifetime.ts';
import { TEST_ADDRESS } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { eventually } from '../support/wait.ts';
import { decrypt } from './decrypt.ts';
import { generateToyKeys, realKeys } from './keys.ts';
import { decodeEncrypted, handleOf, paths } from './relayer.ts';
import { fheFor, reasons, startFheService } from './service.ts';

/** Children of this process that step back for others; only Linux tells. */
function steppedBack(): number {
  return readdirSync('/proc').filter((pid) => {
    const file = `/proc/${pid}/stat`;
    if (!/^\d+$/.test(pid) || !existsSync(file)) return false;
    const stat = readFileSync(file, 'latin1');
    // Parent and priority are the 4th and the 19th field; the second, a name in brackets, may hold spaces.
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    return fields[1] === process.pid && Number(fields[16]) > 0;
  }).length;
}

// On a busy machine a proof takes longer than the five minutes for which `fetch` waits.
setGlobalDispatcher(new Agent({ headersTimeout: 0 }));

const { FHE_KEYS_DIR: folder } = process.env;

describe(`encrypted answers ${folder ? 'with the parameters of the real networks' : 'of up to 256 bits'}`, async () => {
  // Real keys take two minutes of a processor, and each proof a quarter of one.
  const keys = folder ? realKeys(folder) : generateToyKeys(64, 256);
  const upstream = await upstreamFor(suite, { '/plain': faults.json({ v: 1 }) });
  // A test takes longer than the default where the machine has other things to do.
  const options = { fhe: { timeout: 900_000 } };
  const { relayer, service } = await fheFor(suite, upstream, { keys, signers: 3, threshold: 2 }, options);

  // Each takes long: 256 bits here, 64 below, and 8 in `encryption.test.ts`, whose lattice holds no more.
  it('decrypt to the value that was encoded, and leave other endpoints alone while they are made', async (t) => {
    const value = 2n ** 256n - 3n;
    upstream.text('/large', `{"v":${value}}`);
    let pending = true;
    const encrypted = service.post('api/large').finally(() => {
      pending = false;
    });
    const latencies: number[] = [];
    let answeredMeanwhile = 0;
    while (pending) {
      const started = performance.now();
      await verifyEncoded(await service.post('api/plain'), TEST_ADDRESS);
      latencies.push(performance.now() - started);
      if (relayer.submissions.length === 0) answeredMeanwhile += 1;
      // The encryption steps back for whatever asks more often.
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    const response = await encrypted;
    assert.equal(response.status, 200, String(reasons(service)));
    const { data } = await verifyEncoded(response, TEST_ADDRESS);
    const submission = relayer.submissions.at(-1);
    assert.ok(submission);
    assert.equal(decrypt(Buffer.from(submission.ciphertextWithInputVerification, 'hex'), keys, 256), value);
    assert.equal(decodeEncrypted(data).handle, handleOf(submission));
    assert.ok(answeredMeanwhile > 0);
    const sorted = latencies.toSorted((a, b) => a - b);
    const at = (share: number) => `${Math.round(sorted[Math.floor((sorted.length - 1) * share)] ?? 0)} ms`;
    t.diagnostic(`${sorted.length} answers during an encryption: median ${at(0.5)}, 99 % ${at(0.99)}, worst ${at(1)}`);
  });

  it('do not reach the relayer when their client left during the proof, and the next one does', async () => {
    const { length } = relayer.submissions;
    upstream.json('/small', { v: 8 });
    const leave = leavingFetch(`${service.url}/endpoints/${service.ids['api/small']}`);
    const left = () => service.logs.find(({ message }) => / 499 /.test(message));
    const requested = upstream.requests.length;
    await upstream.until(() => upstream.requests.length > requested && upstream.open === 0);
    // Another answer means that this one has come to its encryption.
    await service.post('api/plain');
    await leave();
    await eventually(left, 'the service to notice that the client left');
    const value = 0xfedc_ba98_7654_3210n;
    upstream.text('/middle', `{"v":${value}}`);
    assert.equal((await service.post('api/middle')).status, 200);
    assert.equal(relayer.submissions.length, length + 1);
    const submission = relayer.submissions.at(-1);
    assert.ok(submission);
    assert.equal(decrypt(Buffer.from(submission.ciphertextWithInputVerification, 'hex'), keys, 64), value);
  });

  it('are cut off in the middle of a proof when the service stops, process and all', async (t) => {
    if (process.platform !== 'linux') return t.skip('only Linux tells the priority of others');
    const own = await startFheService(relayer, upstream);
    // As many requests as it took the first time, and it is at its proof.
    const connecting = relayer.upstream.requests.findIndex(({ path }) => path === paths.submit);
    const asked = relayer.upstream.requests.length;
    const others = steppedBack();
    const leave = leavingFetch(`${own.url}/endpoints/${own.ids['api/small']}`);
    await eventually(() => steppedBack() > others, 'the worker to step back');
    await relayer.upstream.until(
      () => relayer.upstream.requests.length >= asked + connecting && relayer.upstream.open === 0,
    );
    await leave();
    await own.stop();
    assert.equal(steppedBack(), others);
    return undefined;
  });
});
