import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { oneApi } from '../../support/answers.ts';
import { example } from '../../support/examples.ts';
import { assertRefused } from '../../support/http.ts';
import { type RunningService, startTestService } from '../../support/service.ts';
import { faults, jsonOfSize, startUpstream, type Upstream } from '../../support/upstream.ts';

describe('stale-if-error', () => {
  let upstream: Upstream;
  let service: RunningService;
  const answer = async (parameters: object = {}, name = 'e') => {
    const response = await service.post(`api/${name}`, parameters);
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return { text, status: response.headers.get('cache-status') };
  };

  /** With the clock as it is then. */
  const start = async () => {
    const endpoints = {
      e: { staleIfError: '10m', receipt: true, parameters: [{ name: 'q' }] },
      fresh: { path: '/e' },
      hung: { path: '/hung' },
    };
    const api = { timeout: 500, maxConcurrentCalls: 1 };
    const plugins = [example('stale-if-error')];
    await service?.stop();
    service = await startTestService(oneApi(upstream.url, endpoints, { api, settings: { plugins } }));
  };

  before(async () => {
    upstream = await startUpstream();
    await start();
  });
  beforeEach(() => upstream.json('/e', 7));
  after(async () => {
    await service.stop();
    await upstream.close();
  });

  it('the last good answer stands in, as it was signed', async () => {
    const good = await answer({ q: 'a' });
    assert.equal(good.status, null);
    for (const fault of [faults.serverError(), faults.empty(429), faults.html(), faults.hang()]) {
      upstream.on('/e', fault);
      assert.deepEqual(await answer({ q: 'a' }), { text: good.text, status: 'stale-if-error; hit' });
    }
    upstream.json('/e', 8);
    const better = await answer({ q: 'a' });
    assert.equal(JSON.parse(better.text).rawData, 8);
    upstream.on('/e', faults.serverError());
    assert.equal((await answer({ q: 'a' })).text, better.text);
  });

  it('also where no slot came free', async () => {
    const good = await answer();
    upstream.on('/hung', faults.hang());
    // The second one waits for the slot in front of the answer.
    const hung = [service.post('api/hung'), service.post('api/hung')];
    await upstream.untilRequested('/hung');
    assert.equal((await answer()).text, good.text);
    await Promise.all(hung);
  });

  it('another question has no answer, nor has an endpoint that keeps none', async () => {
    await answer({ q: 'b' });
    await answer({}, 'fresh');
    upstream.on('/e', faults.serverError());
    await assertRefused(await service.post('api/e', { q: 'c' }), 502, 'API call failed');
    await assertRefused(await service.post('api/fresh'), 502, 'API call failed');
  });

  it('what the upstream says of the question is believed', async () => {
    await answer({ q: 'd' });
    upstream.on('/e', faults.empty(404));
    await assertRefused(await service.post('api/e', { q: 'd' }), 502, 'API call failed');
  });

  it('for a while', async (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
    await start();
    const good = await answer({ q: 'e' });
    upstream.on('/e', faults.serverError());
    t.mock.timers.tick(599_999);
    assert.equal((await answer({ q: 'e' })).text, good.text);
    t.mock.timers.tick(1);
    await assertRefused(await service.post('api/e', { q: 'e' }), 502, 'API call failed');
  });

  it('long answers are not kept', async () => {
    upstream.text('/e', String(jsonOfSize(65_536)));
    await answer({ q: 'f' });
    upstream.on('/e', faults.serverError());
    await assertRefused(await service.post('api/e', { q: 'f' }), 502, 'API call failed');
  });
});
