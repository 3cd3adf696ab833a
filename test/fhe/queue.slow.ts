/** Encryptions wait for each other in a bounded queue, and hold nobody else up. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import type { RunningService } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';
import { generateToyKeys } from './keys.ts';
import { paths, type Relayer } from './relayer.ts';
import { fheFor, reasons } from './service.ts';

describe('encryptions that meet', async () => {
  const keys = generateToyKeys();
  const answer = faults.json({ v: 200 });
  const upstream = await upstreamFor(suite, { '/small': answer, '/plain': answer });

  const post = (service: RunningService, signal: AbortSignal) =>
    fetch(`${service.url}/endpoints/${service.ids['api/small']}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{}',
      signal,
    });

  /** Starts a request and waits until it is at the encryption: its upstream call is over. */
  const reachEncryption = async (
    service: RunningService,
    signal: AbortSignal,
  ): Promise<{ ended: Promise<Response> }> => {
    const { length } = upstream.requests;
    const ended = post(service, signal);
    ended.catch(() => undefined);
    await upstream.until(() => upstream.requests.length > length && upstream.open === 0);
    return { ended };
  };

  const left = (service: RunningService, count: number) =>
    eventually(() => service.logs.filter(({ message }) => / 499 /.test(message)).length >= count);

  it('leave the upstream slot free and other endpoints alone', async (t) => {
    const { relayer, service } = await fheFor(t, upstream, { keys }, { settings: { maxConcurrentApiCalls: 1 } });
    const release = relayer.hold();
    let ended = false;
    const encrypted = service.post('api/small').finally(() => {
      ended = true;
    });
    await relayer.upstream.untilRequested(paths.submit);
    assert.equal((await service.post('api/plain')).status, 200);
    assert.equal(ended, false);
    release();
    assert.equal((await encrypted).status, 200);
  });

  it('wait for each other, are refused at once where too many wait, and leave the queue with their client', async (t) => {
    const { relayer, service } = await fheFor(t, upstream, { keys }, { own: { queue: 1 } });
    const release = relayer.hold();
    const one = service.post('api/small');
    await relayer.upstream.untilRequested(paths.submit);
    const client = new AbortController();
    const two = await reachEncryption(service, client.signal);
    await assertRefused(await service.post('api/small'), 502, 'FHE encryption failed');
    assert.deepEqual(reasons(service), ['the queue is full (1 waiting)']);
    client.abort();
    await assert.rejects(two.ended);
    await left(service, 1);
    const three = await reachEncryption(service, new AbortController().signal);
    release();
    assert.deepEqual([(await one).status, (await three.ended).status], [200, 200]);
    // The second was never encrypted.
    assert.equal(relayer.submissions.length, 2);
  });

  it('are let go with their client while they run, and the worker goes on', async (t) => {
    const { relayer, service } = await fheFor(t, upstream, { keys });
    const release = relayer.hold();
    const client = new AbortController();
    const gone = post(service, client.signal);
    gone.catch(() => undefined);
    await relayer.upstream.untilRequested(paths.submit);
    client.abort();
    await relayer.upstream.untilAborted(paths.submit);
    release();
    assert.equal((await service.post('api/small')).status, 200);
    assert.equal(keyRequests(relayer), 1);
  });

  it('get a new worker, and with it new keys, after a failure', async (t) => {
    const { relayer, service } = await fheFor(t, upstream, { keys });
    assert.equal((await service.post('api/small')).status, 200);
    relayer.upstream.on(paths.submit, faults.serverError());
    await assertRefused(await service.post('api/small'), 502, 'FHE encryption failed');
    relayer.behave();
    assert.equal((await service.post('api/small')).status, 200);
    assert.equal(keyRequests(relayer), 2);
  });

  it('get a new worker when the old one has served its time', async (t) => {
    const { relayer, service } = await fheFor(t, upstream, { keys }, { own: { lifetime: 0 } });
    for (const _ of [1, 2]) assert.equal((await service.post('api/small')).status, 200);
    assert.equal(keyRequests(relayer), 2);
  });
});

function keyRequests({ upstream }: Relayer): number {
  return upstream.requests.filter(({ path }) => path === paths.keyUrl).length;
}
