/** Calls of upstreams are bounded in number, and those that wait are told when there is no room. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { beforeEach, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { assertRefused, endpointUrl } from '../support/http.ts';
import { leavingFetch } from '../support/leaving-client.ts';
import { suite } from '../support/lifetime.ts';
import { oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { verifyRaw } from '../support/verify.ts';

describe('`settings.maxConcurrentApiCalls`', {
  timeout: 60_000,
}, async () => {
  /** Answers that the upstream owes. */
  const held: ServerResponse[] = [];
  const arrivals = new EventEmitter();
  const untilHeld = async (count: number) => {
    while (held.length < count) await once(arrivals, 'held');
  };

  const upstream = await upstreamFor(suite);
  upstream.on('*', (_, res) => {
    held.push(res);
    arrivals.emit('held');
  });
  upstream.json('/quick', { value: 1 });
  const quick = { parameters: [{ name: 'n' }] };
  const api = (name: string, endpoints: Parameters<typeof oneApi>[1], more: object) =>
    oneApi(upstream.url, endpoints, { api: { name, ...more } }).apis;
  const service = await serviceFor(suite, {
    settings: { maxConcurrentApiCalls: 2 },
    apis: [
      ...api('patient', { held: { parameters: [{ name: 'n' }] } }, { timeout: 30_000, maxConcurrentCalls: 2 }),
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
    await untilHeld(2);
    return answers;
  };
  const release = () => {
    for (const res of held.splice(0)) res.end('{"value":1}');
  };
  const heldFor = (body: string) => leavingFetch(endpointUrl(service, 'patient/held'), {}, body);
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

  it('never more calls than slots; who waits gets a slot when one comes free', async () => {
    const answers = await occupy();
    const waiting = [3, 4, 5, 6].map((n) => service.post('patient/held', { n }));
    let most = 0;
    for (let asked = 2; asked < 6; asked++) {
      held.shift()?.end('{"value":1}');
      await untilHeld(2);
      most = Math.max(most, upstream.open);
    }
    release();
    await verified([...answers, ...waiting]);
    assert.equal(most, 2);
    const paths = upstream.requests.map(({ path }) => path).sort();
    assert.deepEqual(
      paths,
      [1, 2, 3, 4, 5, 6].map((n) => `/held?n=${n}`),
    );
  });

  it('a client that leaves while it waits leaves the queue, and its upstream is never asked', async () => {
    const answers = await occupy();
    const leave = heldFor('{"parameters":{"n":"gone"}}');
    // The service has the request once another one that was sent later has its answer.
    await assertRefused(await service.post('hasty/quick'), 503, 'Server busy');
    await leave();
    while (!service.logs.some(({ message }) => message.includes(' 499 '))) await setTimeout(5);
    release();
    await verified(answers);
    await verified([service.post('hasty/quick')]);
    assert.ok(!upstream.requests.some(({ path }) => path.includes('gone')));
  });

  it('a client that leaves during the call frees its slot and ends the upstream call', async () => {
    const leaving = [heldFor('{}'), heldFor('{}')];
    await untilHeld(2);
    for (const leave of leaving) await leave();
    await upstream.untilAborted('/held', 2);
    await verifyRaw(await service.post('hasty/quick'), TEST_ADDRESS);
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
