/** `apis[].breaker` asks a host no more for a while that has failed often. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { describe, it, type TestContext } from 'node:test';
import { assertRefused } from '../support/http.ts';
import { inTurn } from '../support/in-turn.ts';
import { suite } from '../support/lifetime.ts';
import { scrape } from '../support/metrics.ts';
import { oneApi, serviceFor, TEST_KEY } from '../support/service.ts';
import { faults, type Handler, upstreamFor } from '../support/upstream.ts';

const OPEN_FOR = 60_000;

/** Has the time pass that a breaker stays open: no wait tells how long a busy machine takes for what comes between. */
function later(t: TestContext): void {
  const now = performance.now();
  const since = process.hrtime.bigint();
  t.mock.method(performance, 'now', () => now + OPEN_FOR + Number(process.hrtime.bigint() - since) / 1e6);
}

describe('breaker', async () => {
  const upstream = await upstreamFor(suite);

  /** One with a breaker of its own: it belongs to the process of a service. */
  const start = async (t: TestContext, ...handlers: Handler[]) => {
    upstream.requests.splice(0);
    upstream.on('*', inTurn(...handlers));
    const api = { breaker: { failures: 2, openFor: OPEN_FOR }, timeout: handlers.length > 1 ? 10_000 : 300 };
    const config = oneApi(upstream.url, { e: {}, other: {} }, { api, settings: { metrics: { port: 0 } } });
    const service = await serviceFor(t, config);
    const ask = async (name = 'e') => (await service.post(`api/${name}`)).status;
    return { service, ask };
  };
  const said = (logs: readonly { message: string; fields: object }[]) => {
    const lines = logs.map(({ message, fields }) => ({ message, ...fields }));
    return lines.filter(({ message }) => /upstream (is asked|answers)/.test(message));
  };

  const causes = { 'statuses of 5xx': faults.serverError(), 'no answers': faults.hang() };
  for (const [what, failing] of Object.entries(causes)) {
    it(`opens after ${what} in a row, and says 503 without a call`, async (t) => {
      const { service, ask } = await start(t, failing);
      assert.deepEqual([await ask(), await ask()], [502, 502]);
      const response = await service.post('api/other');
      assert.match(response.headers.get('retry-after') ?? '', /^(60|5\d)$/);
      await assertRefused(response, 503, 'Upstream unavailable');
      assert.equal(upstream.requests.length, 2);
      assert.deepEqual((await scrape(service)).table('upstream_breakers_open'), { '': 1 });
      const host = new URL(upstream.url).host;
      const message = 'an upstream is asked no more for a while: it has failed too often';
      assert.deepEqual(said(service.logs), [{ message, host, failures: 2 }]);
    });
  }

  it('lets one call try once its time is over: it closes, or opens again', async (t) => {
    const { service, ask } = await start(t, ...Array(3).fill(faults.serverError()), faults.json(7));
    assert.deepEqual([await ask(), await ask(), await ask()], [502, 502, 503]);
    later(t);
    assert.deepEqual([await ask(), await ask()], [502, 503]);
    later(t);
    assert.deepEqual([await ask(), await ask()], [200, 200]);
    assert.equal(upstream.requests.length, 5);
    assert.equal(said(service.logs).at(-1)?.message, 'an upstream answers again');
    const found = await scrape(service);
    assert.deepEqual(found.table('upstream_breakers_open'), { '': 0 });
    const name = `api ${new URL(upstream.url).host}`;
    const turns = { [`${name} open`]: 2, [`${name} half_open`]: 2, [`${name} closed`]: 1 };
    assert.deepEqual(found.table('upstream_breaker_turns_total'), turns);
  });

  it('lets only one of many try', async (t) => {
    const events = new EventEmitter();
    const others = once(events, 'answer');
    const waiting: Handler = async (...call) => {
      await others;
      await faults.json(7)(...call);
    };
    const { ask } = await start(t, faults.serverError(), faults.serverError(), waiting);
    assert.deepEqual([await ask(), await ask()], [502, 502]);
    later(t);
    const trial = ask();
    await upstream.until(() => upstream.requests.length >= 3);
    assert.deepEqual(await Promise.all([ask(), ask()]), [503, 503]);
    events.emit('answer');
    assert.equal(await trial, 200);
  });

  it('counts failures in a row, of the host and not of what was asked', async (t) => {
    const fine = faults.json(7);
    const order = [faults.serverError(), fine, faults.serverError(), faults.empty(404), faults.serverError()];
    const { ask } = await start(t, ...order, faults.empty(429), faults.empty(429), fine);
    for (const status of [502, 200, 502, 502, 502, 502, 502, 200]) assert.equal(await ask(), status);
  });

  it('stays open over a reload', async (t) => {
    const { service, ask } = await start(t, faults.serverError());
    assert.deepEqual([await ask(), await ask(), await ask()], [502, 502, 503]);
    assert.equal(await service.reload(() => ({ SERVICE_PRIVATE_KEY: TEST_KEY })), true);
    assert.equal(await ask(), 503);
    assert.equal(upstream.requests.length, 2);
  });

  it('spares a retry its calls, and has a mirror asked at once', async (t) => {
    const down = await upstreamFor(t, { '*': faults.serverError() });
    upstream.on('*', faults.json(7));
    const api = { breaker: { failures: 1, openFor: '1m' }, mirrors: [upstream.url], retry: { attempts: 3 } };
    const service = await serviceFor(t, oneApi(down.url, { e: {} }, { api }));
    for (const _ of [1, 2, 3]) assert.equal((await service.post('api/e')).status, 200);
    assert.equal(down.requests.length, 1);
  });

  it('counts a request once, however often it is repeated, and says how the upstream failed', async (t) => {
    upstream.on('*', faults.serverError());
    upstream.requests.splice(0);
    const api = { breaker: { failures: 2, openFor: '1m' }, retry: { attempts: 3 } };
    const { apis } = oneApi(upstream.url, { e: {} }, { api });
    const others = oneApi(upstream.url, { f: {} }, { api: { ...api, name: 'other', headers: { x: 'y' } } });
    const service = await serviceFor(t, { apis: [...apis, ...others.apis] });
    await assertRefused(await service.post('api/e'), 502, 'API call failed');
    assert.equal(upstream.requests.length, 3);
    // The second failure opens it; what the upstream was asked before tells more than that it is asked no more.
    await assertRefused(await service.post('api/e'), 502, 'API call failed');
    assert.equal(upstream.requests.length, 4);
    await assertRefused(await service.post('api/e'), 503, 'Upstream unavailable');
    upstream.on('*', faults.json(7));
    assert.equal((await service.post('other/f')).status, 200);
  });
});
