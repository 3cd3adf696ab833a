/** A client that disconnects ends its request, and its slot is free. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { oneApi } from '../support/answers.ts';
import { eventually } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { acts, notes, pluginFiles, puppetFile } from '../support/plugin-files.ts';
import { serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

const encoding = { type: 'uint256', path: '$.price' };

describe('a client that disconnects ends its sync or stream request', async () => {
  const upstream = await upstreamFor(suite);
  const { files, plugins } = pluginFiles({ spy: puppetFile('spy') }, { spy: { timeout: 30_000 } });
  const service = await serviceFor(
    suite,
    oneApi(
      upstream.url,
      {
        sync: { path: '/held', encoding },
        stream: { path: '/held?s', encoding, mode: 'stream' },
        quick: { encoding },
      },
      { settings: { plugins, maxConcurrentApiCalls: 1 } },
    ),
    { files },
  );

  beforeEach(() => {
    upstream.on('/held', faults.hang());
    upstream.json('/quick', { price: 3 });
    upstream.requests.length = 0;
    service.logs.length = 0;
    acts.clear();
    notes.clear();
    acts.set('spy onResponseSent', ({ endpoint }) => notes.add('observed', endpoint));
    acts.set('spy onError', ({ endpoint, stage }) => notes.add('observed', [endpoint, stage]));
  });
  /** Whoever left was observed by no hook, and the only slot is free again. */
  afterEach(async () => {
    assert.equal(BigInt((await verifyEncoded(await service.post('api/quick'), service.signer.address)).data), 3n);
    assert.deepEqual(await notes.until('observed'), ['quick']);
  });

  /** Sends a request of which the client may tire. */
  function send(endpoint: string) {
    const controller = new AbortController();
    const outcome = fetch(`${service.url}/endpoints/${service.ids[`api/${endpoint}`]}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{}',
      signal: controller.signal,
    }).then(
      ({ status }) => status,
      ({ name }) => name,
    );
    return { outcome, leave: () => controller.abort() };
  }

  const logged = (endpoint: string) =>
    eventually(() => service.logs.find(({ message }) => message.startsWith(`api/${endpoint} 499 `)), 'the log line');

  let aborted = 0;
  for (const mode of ['sync', 'stream']) {
    it(`${mode}: the upstream call is aborted, the slot comes back, the log shows 499`, async () => {
      const { outcome, leave } = send(mode);
      await upstream.until(() => upstream.requests.length === 1);
      leave();
      aborted += 1;
      await upstream.untilAborted('/held', aborted);
      assert.equal(await outcome, 'AbortError');
      const line = await logged(mode);
      assert.equal(line.level, 'info');
      assert.deepEqual(
        service.logs.filter(({ level }) => level === 'warn' || level === 'error'),
        [],
      );
    });
  }

  it('one that waits for a slot leaves the queue', async () => {
    const first = send('sync');
    await upstream.until(() => upstream.requests.length === 1);
    const second = send('stream');
    await new Promise((resolve) => setTimeout(resolve, 50));
    second.leave();
    await logged('stream');
    first.leave();
    aborted += 1;
    await upstream.untilAborted('/held', aborted);
    assert.deepEqual(await Promise.all([first.outcome, second.outcome]), ['AbortError', 'AbortError']);
    assert.equal(upstream.requests.length, 1);
  });

  for (const hook of ['onHttpRequest', 'onBeforeApiCall', 'onAfterApiCall', 'onBeforeSign']) {
    it(`the signal of a plugin at work in ${hook} aborts, and nothing comes after it`, async () => {
      upstream.json('/held', { price: 1 });
      acts.set(`spy ${hook}`, ({ signal, endpoint }) => {
        if (endpoint !== 'sync') return undefined;
        notes.add('at work');
        return new Promise((resolve) => {
          (signal as AbortSignal).addEventListener('abort', () => {
            notes.add('aborted');
            resolve(undefined);
          });
        });
      });
      const { outcome, leave } = send('sync');
      await notes.until('at work');
      leave();
      await notes.until('aborted');
      await logged('sync');
      assert.equal(await outcome, 'AbortError');
      assert.equal(upstream.requests.length, hook === 'onHttpRequest' || hook === 'onBeforeApiCall' ? 0 : 1);
    });
  }

  it('one that leaves in the middle of its body', async () => {
    const { hostname, port } = new URL(service.url);
    const socket = connect(Number(port), hostname);
    socket.write(
      `POST /endpoints/${service.ids['api/sync']} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"para`,
    );
    // The service answers others meanwhile, so that the request has arrived for sure.
    await (await fetch(`${service.url}/health`)).text();
    await new Promise((resolve) => setTimeout(resolve, 20));
    socket.destroy();
    await logged('sync');
    assert.equal(upstream.requests.length, 0);
  });
});
