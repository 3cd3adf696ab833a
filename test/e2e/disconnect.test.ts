/** A client that disconnects ends its request, and its slot is free. */

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { JSON_HEADERS } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { scrape } from '../support/metrics.ts';
import { acts, notes, puppetFile } from '../support/plugin-files.ts';
import { openRaw, requestHead } from '../support/raw-http.ts';
import { served, visit } from '../support/served.ts';
import { tidy } from '../support/tidy.ts';
import { faults } from '../support/upstream.ts';
import { eventually, retried } from '../support/wait.ts';

const encoding = { type: 'uint256', path: '$.price' };

describe('a client that disconnects ends its sync or stream request', async () => {
  const endpoints = {
    sync: { path: '/held', encoding },
    stream: { path: '/held?s', encoding, mode: 'stream' },
    quick: { encoding },
  };
  const { upstream, service, at, encoded } = await served(suite, endpoints, {
    answers: { '/quick': faults.json({ price: 3 }) },
    sources: { spy: puppetFile('spy') },
    entries: { spy: { timeout: 30_000 } },
    settings: { maxConcurrentApiCalls: 1, metrics: { port: 0 } },
  });
  const send = (name: string) => visit(service, `api/${name}`);

  beforeEach(() => {
    tidy(service, upstream);
    upstream.on('/held', faults.hang());
    acts.set('spy onResponseSent', ({ endpoint }) => notes.add('observed', endpoint));
    acts.set('spy onError', ({ endpoint, stage }) => notes.add('observed', [endpoint, stage]));
  });
  /** Whoever left was observed by no hook, and the only slot is free again. */
  afterEach(async () => {
    assert.equal(BigInt((await encoded('quick')).data), 3n);
    assert.deepEqual(await notes.until('observed'), ['quick']);
  });

  const logged = (endpoint: string) =>
    eventually(() => service.logs.find(({ message }) => message.startsWith(`api/${endpoint} 499 `)), 'the log line');

  /** Where the metrics are, which each test forgets. */
  const logs = [...service.logs];
  const untilWaiting = (count: number) =>
    retried(async () => assert.equal((await scrape({ logs })).value('upstream_slots_waiting'), count));

  let aborted = 0;
  for (const mode of ['sync', 'stream']) {
    it(`${mode}: the upstream call is aborted, the slot comes back, the log shows 499`, async () => {
      const { outcome, leave } = send(mode);
      await upstream.until(() => upstream.requests.length === 1);
      leave();
      aborted += 1;
      await upstream.untilAborted('/held', aborted);
      assert.equal(await outcome, 'left');
      assert.equal((await logged(mode)).level, 'info');
      assert.ok(!service.logs.some(({ level }) => level === 'warn' || level === 'error'));
    });
  }

  it('one that waits for a slot leaves the queue', async () => {
    const first = send('sync');
    await upstream.until(() => upstream.requests.length === 1);
    const second = send('stream');
    await untilWaiting(1);
    second.leave();
    await untilWaiting(0);
    await logged('stream');
    first.leave();
    aborted += 1;
    await upstream.untilAborted('/held', aborted);
    assert.deepEqual(await Promise.all([first.outcome, second.outcome]), ['left', 'left']);
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
      assert.equal(await outcome, 'left');
      assert.equal(upstream.requests.length, hook === 'onHttpRequest' || hook === 'onBeforeApiCall' ? 0 : 1);
    });
  }

  const begun: Readonly<Record<string, readonly [headers: Record<string, string>, body: string]>> = {
    'of announced length': [{ 'Content-Length': '100' }, '{"para'],
    'in chunks': [{ 'Transfer-Encoding': 'chunked' }, '1\r\n{'],
  };
  for (const [how, [headers, body]] of Object.entries(begun))
    it(`one that leaves in the middle of its body ${how}`, async () => {
      const all = { ...JSON_HEADERS, Expect: '100-continue', ...headers };
      const client = openRaw(service.url);
      client.write(`${requestHead(`POST ${new URL(at('sync')).pathname}`, all)}\r\n`);
      await client.until((text) => text === 'HTTP/1.1 100 Continue\r\n\r\n');
      await client.sent(body);
      client.destroy();
      await logged('sync');
      assert.equal(upstream.requests.length, 0);
    });
});
