/** `apis[].mirrors` are asked where the host before fails. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { assertRefused, rawDataOf } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { scrape } from '../support/metrics.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { oneApi, type RunningService, serviceFor, startTestService } from '../support/service.ts';
import { faults, type Handler, upstreamFor } from '../support/upstream.ts';

const NOBODY = 'http://127.0.0.1:1';

describe('mirrors', async () => {
  const [first, second, third] = [await upstreamFor(suite), await upstreamFor(suite), await upstreamFor(suite)];
  const hosts = [first, second, third];
  let service: RunningService;

  beforeEach(async () => {
    const endpoints = { e: { parameters: [{ name: 'q' }] }, posted: { method: 'POST' } };
    const api = { mirrors: [`${second.url}/v2/`, `${third.url}/v3`], timeout: 1500, headers: { 'X-Key': 'k' } };
    const config = oneApi(`${first.url}/v1`, endpoints, { api, settings: { metrics: { port: 0 } } });
    service = await startTestService(config);
    for (const each of hosts) each.requests.splice(0);
  });
  afterEach(() => service.stop());

  const answers = (...handlers: Handler[]) => {
    for (const [i, each] of hosts.entries()) each.on('*', handlers[i] ?? faults.json(i + 1));
  };
  /** Who was asked, as a list of paths each. */
  const asked = () => hosts.map((each) => each.requests.splice(0).map(({ path }) => path));

  for (const [what, failing] of Object.entries({
    'answers 500': faults.serverError(),
    'answers 429': faults.empty(429),
    'answers no JSON': faults.html(),
    'never answers': faults.hang(),
    'resets the connection': faults.reset(),
  })) {
    it(`are asked where the first ${what}: same path, query and headers`, async () => {
      answers(failing);
      assert.equal(await rawDataOf(await service.post('api/e', { q: 'a b' })), 2);
      assert.equal(second.requests[0]?.headers['x-key'], 'k');
      assert.deepEqual(asked(), [['/v1/e?q=a%20b'], ['/v2/e?q=a%20b'], []]);
    });
  }

  it('are not asked while the first answers, nor where it refuses what is asked', async () => {
    answers();
    assert.equal(await rawDataOf(await service.post('api/e')), 1);
    answers(faults.empty(404));
    await assertRefused(await service.post('api/e'), 502, 'API call failed');
    assert.deepEqual(asked(), [['/v1/e', '/v1/e'], [], []]);
  });

  it('are not asked for what a plugin asks at a host of its own', async (t) => {
    const source = `export default { name: 'turning', setup: () => ({ hooks: {
      callApi: (request, _, { next }) => next({ ...request, url: '${third.url}/own' }) } }) };`;
    const { files, plugins } = pluginFiles({ turning: source });
    const config = oneApi(`${first.url}/v1`, { e: {} }, { api: { mirrors: [second.url] }, settings: { plugins } });
    const turned = await serviceFor(t, config, { files });
    answers(faults.json(1), faults.json(2), faults.serverError());
    await assertRefused(await turned.post('api/e'), 502, 'API call failed');
    assert.deepEqual(asked(), [[], [], ['/own']]);
  });

  it('come first while a host that failed rests', async () => {
    answers(faults.serverError());
    assert.equal(await rawDataOf(await service.post('api/e')), 2);
    answers();
    assert.equal(await rawDataOf(await service.post('api/e')), 2);
    assert.deepEqual(asked(), [['/v1/e'], ['/v2/e', '/v2/e'], []]);
  });

  it('fail with what the last one said', async () => {
    answers(faults.serverError(), faults.empty(503), faults.empty(504));
    await assertRefused(await service.post('api/e'), 502, 'API call failed');
    const line = service.logs.findLast(({ message }) => message === 'API call failed');
    assert.equal(line?.fields.detail, 'upstream status 504');
    assert.deepEqual(asked(), [['/v1/e'], ['/v2/e'], ['/v3/e']]);
  });

  it('get no POST that may have been carried out', async () => {
    for (const fault of [faults.serverError(), faults.hang(), faults.reset()]) {
      answers(fault);
      await assertRefused(await service.post('api/posted'), 502, 'API call failed');
    }
    assert.deepEqual(asked(), [['/v1/posted', '/v1/posted', '/v1/posted'], [], []]);
  });

  it('are counted', async () => {
    answers(faults.serverError(), faults.serverError());
    assert.equal(await rawDataOf(await service.post('api/e')), 3);
    const found = await scrape(service);
    assert.deepEqual(found.table('upstream_failovers_total'), { api: 2 });
  });
});

it('a POST that nobody has heard is sent to the next', async (t) => {
  const upstream = await upstreamFor(t, { '/e': faults.json(7) });
  const service = await serviceFor(t, oneApi(NOBODY, { e: { method: 'POST' } }, { api: { mirrors: [upstream.url] } }));
  assert.equal((await service.post('api/e')).status, 200);
});

it('each attempt of a retry asks the mirrors, within one timeout', async (t) => {
  const hanging = await upstreamFor(t, { '*': faults.hang() });
  const api = { mirrors: [`${hanging.url}/b`], retry: { attempts: 2 }, timeout: 800 };
  const service = await serviceFor(t, oneApi(`${hanging.url}/a`, { e: {} }, { api }));
  await assertRefused(await service.post('api/e'), 502, 'API call failed');
  assert.deepEqual(hanging.requests.map(({ path }) => path).sort(), ['/a/e', '/a/e', '/b/e', '/b/e']);
});

it('a POST goes to the mirror while the breaker of the host is open', async (t) => {
  const down = await upstreamFor(t, { '*': faults.serverError() });
  const up = await upstreamFor(t, { '*': faults.json(7) });
  const api = { mirrors: [up.url], breaker: { failures: 1, openFor: '1m' } };
  const service = await serviceFor(t, oneApi(down.url, { e: { method: 'POST' } }, { api }));
  assert.deepEqual([(await service.post('api/e')).status, (await service.post('api/e')).status], [502, 200]);
  assert.deepEqual([down.requests.length, up.requests.length], [1, 1]);
});
