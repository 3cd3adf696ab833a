/** Calls of upstreams are bounded in number, and those that wait are told when there is no room. */

import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, holding, upstreamFor } from '../support/upstream.ts';
import { verifyRaw } from '../support/verify.ts';

describe('`settings.maxConcurrentApiCalls`', { timeout: 60_000 }, async () => {
  const { held, hold, arrived, release } = holding();
  const upstream = await upstreamFor(suite, { '*': hold, '/quick': faults.json({ value: 1 }) });
  const quick = { parameters: [{ name: 'n' }] };
  const api = (name: string, endpoints: Parameters<typeof oneApi>[1], more: object) =>
    oneApi(upstream.url, endpoints, { api: { name, ...more } }).apis;
  const service = await serviceFor(suite, {
    settings: { maxConcurrentApiCalls: 2 },
    apis: [
      ...api('patient', { held: { parameters: [{ name: 'n' }] } }, { timeout: 30_000, maxConcurrentCalls: 2 }),
      ...api('single', { held: { parameters: [{ name: 's' }] } }, { timeout: 30_000, maxConcurrentCalls: 1 }),
      ...api('hasty', { quick: {} }, { timeout: 1000 }),
      ...api('cached', { quick }, { timeout: 1000, cache: { maxAge: 60_000 } }),
    ],
  });

  beforeEach(() => {
    upstream.requests.length = 0;
    held.length = 0;
  });

  const occupy = async () => {
    const answers = [service.post('patient/held', { n: 1 }), service.post('patient/held', { n: 2 })];
    await arrived(2);
    return answers;
  };
  const verified = async (answers: readonly Promise<Response>[]) => {
    for (const answer of answers) await verifyRaw(await answer, TEST_ADDRESS);
  };

  it('503 `Server busy` when no slot came free within the timeout of the API; the upstream is not asked', async () => {
    const answers = await occupy();
    await assertRefused(await service.post('hasty/quick'), 503, 'Server busy');
    assert.equal(upstream.requests.map(({ path }) => path.split('?')[0]).join(), '/held,/held');
    release();
    await verified([...answers, service.post('hasty/quick')]);
  });

  it('never more calls than slots; who waits gets a slot when one comes free, whatever its API', async () => {
    const answers = await occupy();
    const waiting = [3, 4, 5].map((n) => service.post('patient/held', { n }));
    waiting.push(service.post('single/held', { s: 1 }));
    let most = 0;
    for (let asked = 2; asked < 6; asked++) {
      held.shift()?.end('{"value":1}');
      await arrived(2);
      most = Math.max(most, upstream.open);
    }
    release();
    await verified([...answers, ...waiting]);
    assert.equal(most, 2);
    const paths = upstream.requests.map(({ path }) => path).sort();
    assert.deepEqual(paths, [...[1, 2, 3, 4, 5].map((n) => `/held?n=${n}`), '/held?s=1']);
  });

  it('never more calls of an API than its `maxConcurrentCalls`, which leaves a slot to others', async () => {
    const answers = [1, 2, 3].map((s) => service.post('single/held', { s }));
    for (let asked = 0; asked < 3; asked++) {
      await arrived(1);
      await verified([service.post('hasty/quick')]);
      assert.equal(held.length, 1);
      release();
    }
    await verified(answers);
  });

  it('a cached answer needs no slot', async () => {
    const first = await verifyRaw(await service.post('cached/quick', { n: 1 }), TEST_ADDRESS);
    const answers = await occupy();
    assert.deepEqual(await verifyRaw(await service.post('cached/quick', { n: 1 }), TEST_ADDRESS), first);
    await assertRefused(await service.post('cached/quick', { n: 2 }), 503, 'Server busy');
    release();
    await verified(answers);
  });
});
