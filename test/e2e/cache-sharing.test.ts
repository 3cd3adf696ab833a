/** Clients that miss the cache together share one call of the upstream. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { oneApi } from '../support/answers.ts';
import { assertRefused, eventually } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { scrapeAfter } from '../support/metrics.ts';
import { acts, pluginFiles, puppetFile } from '../support/plugin-files.ts';
import { serviceFor } from '../support/service.ts';
import { tidy } from '../support/tidy.ts';
import { faults, startUpstream, type Upstream, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

describe('clients that miss the cache at the same time share one upstream call', async () => {
  /** Requests that the service has taken in. */
  let arrived = 0;
  /** Answers the calls that have arrived and wait, in their order. */
  const held: Array<(status: number, price?: number) => void> = [];

  const upstream = await upstreamFor(suite, {
    '/price': (_, response) => {
      held.push((status, price = 7) =>
        response.writeHead(status, { 'Content-Type': 'application/json' }).end(`{"price": ${price}}`),
      );
    },
  });
  const encoding = { type: 'uint256', path: '$.price' };
  const parameters = [{ name: 'q' }];
  const { files, plugins } = pluginFiles({ arrivals: puppetFile('arrivals', ['onHttpRequest']) });
  const service = await serviceFor(
    suite,
    oneApi(
      upstream.url,
      {
        kept: { path: '/price', encoding, parameters, cache: { maxAge: 60_000 } },
        brief: { path: '/price?b', encoding, parameters, cache: { maxAge: 1 } },
      },
      { api: { name: 'x' }, settings: { plugins } },
    ),
    { files },
  );

  beforeEach(() => tidy(service, upstream));
  beforeEach(() => {
    held.length = 0;
    arrived = 0;
    acts.set('arrivals onHttpRequest', () => {
      arrived += 1;
    });
  });

  const calls = (count: number) => eventually(() => held.length >= count || undefined, `${count} calls`);
  /** Resolves when so many requests have come as far as to look into the cache. */
  const settled = (count: number) => eventually(() => arrived >= count || undefined, `${count} requests`);

  it('and get the same answer', async () => {
    const answers = Array.from({ length: 20 }, () => service.post('x/kept', { q: 'same' }));
    await calls(1);
    await settled(20);
    held[0]?.(200);
    const statuses = await Promise.all(answers.map(async (answer) => (await answer).headers.get('cache-status')));
    const collapsed = Array<string>(19).fill('signed-data-proxy; fwd=miss; collapsed');
    assert.deepEqual(statuses.toSorted(), ['signed-data-proxy; fwd=miss', ...collapsed]);
    const texts = await Promise.all(answers.map(async (answer) => (await answer).text()));
    assert.equal(new Set(texts).size, 1);
    await verifyEncoded(JSON.parse(texts[0] ?? ''), service.signer.address);
    assert.equal(upstream.requests.length, 1);
  });

  it('also when the answer is not kept as long as they waited', async () => {
    const answers = Array.from({ length: 5 }, () => service.post('x/brief', { q: 'same' }));
    await calls(1);
    await settled(5);
    held[0]?.(200);
    const statuses = await Promise.all(answers.map(async (answer) => (await answer).status));
    assert.deepEqual(statuses, Array(5).fill(200));
    assert.equal(upstream.requests.length, 1);
  });

  it('but not with clients that ask something else', async () => {
    const answers = [service.post('x/kept', { q: 'one' }), service.post('x/kept', { q: 'other' })];
    await calls(2);
    for (const answer of held) answer(200);
    await Promise.all(answers.map(async (answer) => verifyEncoded(await answer, service.signer.address)));
  });

  it('share its failure, which is not kept', async () => {
    const answers = Array.from({ length: 6 }, () => service.post('x/kept', { q: 'failing' }));
    await calls(1);
    await settled(6);
    held[0]?.(500);
    for (const answer of answers) await assertRefused(await answer, 502, 'API call failed');
    assert.equal(upstream.requests.length, 1);
    const next = service.post('x/kept', { q: 'failing' });
    await calls(2);
    held[1]?.(200);
    await verifyEncoded(await next, service.signer.address);
  });

  const ask = (q: string, signal: AbortSignal | null) =>
    fetch(`${service.url}/endpoints/${service.ids['x/kept']}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ parameters: { q } }),
      signal,
    });

  it('which goes on when the client leaves that came first', async () => {
    const leader = new AbortController();
    const left = ask('left', leader.signal).catch(() => undefined);
    await calls(1);
    const answers = [ask('left', null), ask('left', null)];
    await settled(3);
    leader.abort();
    await left;
    // The service learns late of clients that leave.
    await sleep(1200);
    held[0]?.(200);
    for (const answer of answers) await verifyEncoded(await answer, service.signer.address);
    assert.equal(upstream.requests.length, 1);
  });

  it('which ends when all have left: who comes then has a call of his own', async () => {
    const controller = new AbortController();
    const left = [ask('all', controller.signal), ask('all', controller.signal)].map((one) => one.catch(() => 'left'));
    await calls(1);
    await settled(2);
    controller.abort();
    assert.deepEqual(await Promise.all(left), ['left', 'left']);
    await upstream.untilAborted('/price');
    const newcomer = ask('all', null);
    await calls(2);
    held[1]?.(200);
    await verifyEncoded(await newcomer, service.signer.address);
    assert.equal(upstream.requests.length, 2);
  });

  it('and may leave while they wait', async () => {
    const leader = service.post('x/kept', { q: 'patient' });
    await calls(1);
    const impatient = new AbortController();
    const left = fetch(`${service.url}/endpoints/${service.ids['x/kept']}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"parameters":{"q":"patient"}}',
      signal: impatient.signal,
    }).catch(() => 'left');
    await settled(2);
    impatient.abort();
    assert.equal(await left, 'left');
    held[0]?.(200);
    await verifyEncoded(await leader, service.signer.address);
    assert.equal(upstream.requests.length, 1);
  });
});

describe('clients that wait for the call of another', () => {
  const start = async (t: TestContext, upstream: Upstream, timeout: number) => {
    t.after(() => upstream.close());
    const { files, plugins } = pluginFiles(
      { puppet: puppetFile('puppet', ['onHttpRequest', 'onBeforeSign']) },
      { puppet: { timeout: 30_000 } },
    );
    const api = { timeout, cache: { maxAge: 60_000 } };
    const encoding = { type: 'uint256', path: '$.price' };
    const config = oneApi(upstream.url, { e: { encoding } }, { api, settings: { plugins, metrics: { port: 0 } } });
    const service = await serviceFor(t, config, { files });
    let arrived = 0;
    acts.clear();
    acts.set('puppet onHttpRequest', () => {
      arrived += 1;
    });
    const url = `${service.url}/endpoints/${service.ids['api/e']}`;
    /** Asks, once all before have come as far as to look into the cache. */
    const ask = async (signal: AbortSignal | null = null) => {
      const before = arrived;
      const headers = { 'Content-Type': 'application/json' };
      const answer = fetch(url, { method: 'POST', headers, body: '{}', signal });
      answer.catch(() => undefined);
      await eventually(() => arrived > before || undefined, 'a request');
      return { answer };
    };
    return { service, ask };
  };

  it('wait for one timeout, whoever else leaves', async (t) => {
    const upstream = await startUpstream({ '/e': faults.hang() });
    const { ask } = await start(t, upstream, 3000);
    const leaving = Array.from({ length: 5 }, () => new AbortController());
    for (const { signal } of leaving) await ask(signal);
    const victim = await ask();
    for (const client of leaving) client.abort();
    await assertRefused(await victim.answer, 502, 'API call failed');
    assert.equal(upstream.requests.length, 1);
  });

  it('wait for all that is to be done with its answer', async (t) => {
    const TIMEOUT = 100;
    const upstream = await startUpstream();
    upstream.json('/e', { price: 7 });
    const { ask, service } = await start(t, upstream, TIMEOUT);
    const signing: Array<() => void> = [];
    acts.set('puppet onBeforeSign', () => new Promise<void>((resolve) => signing.push(resolve)));
    const leader = await ask();
    const letGo = await eventually(() => signing[0], 'the leader');
    const waiting = [await ask(), await ask()];
    await sleep(4 * TIMEOUT);
    letGo();
    for (const { answer } of [leader, ...waiting]) await verifyEncoded(await answer, service.signer.address);
    assert.equal(upstream.requests.length, 1);
  });

  it('count when they join it', async (t) => {
    const held: Array<() => void> = [];
    const upstream = await startUpstream({
      '/e': (...args) => void held.push(() => faults.json({ price: 7 })(...args)),
    });
    const { ask, service } = await start(t, upstream, 10_000);
    const leader = await ask();
    await eventually(() => held[0], 'the call');
    const leaving = new AbortController();
    await ask(leaving.signal);
    leaving.abort();
    const found = await scrapeAfter(service, 1);
    assert.deepEqual(found.happened('cache_lookups_total'), { miss: 1, shared: 1 });
    held[0]?.();
    await verifyEncoded(await leader.answer, service.signer.address);
  });
});
