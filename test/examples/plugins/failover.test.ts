import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { oneApi } from '../../support/answers.ts';
import { example } from '../../support/examples.ts';
import { assertRefused, endpointUrl, JSON_HEADERS } from '../../support/http.ts';
import { type RunningService, startTestService } from '../../support/service.ts';
import { faults, type Handler, startUpstream, type Upstream } from '../../support/upstream.ts';

describe('failover', () => {
  let first: Upstream;
  let second: Upstream;
  let service: RunningService;
  const endpoints = {
    e: { path: '/e?v=1', parameters: [{ name: 'q' }] },
    posted: { path: '/e', method: 'POST', parameters: [{ name: 'q', in: 'body' }] },
  };
  const start = (rest: string) => {
    const api = { headers: { 'X-Api-Key': 'k' }, timeout: 2000, failover: [second.url] };
    const plugins = [example('failover', { rest })];
    return startTestService(oneApi(`${first.url}/v1`, endpoints, { api, settings: { plugins } }));
  };
  const answers = (one: Handler, other: Handler) => {
    first.on('/v1/e', one);
    second.on('/v1/e', other);
  };
  const ask = async (parameters = {}, name = 'e') => {
    const response = await service.post(`api/${name}`, parameters);
    return JSON.parse(await response.text()).rawData;
  };
  const calls = () => [first, second].map(({ requests }) => requests.splice(0).length);

  before(async () => {
    first = await startUpstream();
    second = await startUpstream();
    service = await start('1ms');
  });
  beforeEach(calls);
  after(async () => {
    await service.stop();
    await first.close();
    await second.close();
  });

  it('asks the other origin for the same, whatever way the first one fails', async () => {
    const failures = [faults.reset(), faults.serverError(), faults.empty(429), faults.hang(), faults.html()];
    for (const fault of failures) {
      answers(fault, faults.json(2));
      assert.equal(await ask({ q: 'a b' }), 2);
      const [asked] = first.requests;
      const [other] = second.requests;
      assert.equal(other?.path, '/v1/e?v=1&q=a%20b');
      assert.deepEqual([other.path, other.headers['x-api-key']], [asked?.path, 'k']);
      assert.deepEqual(calls(), [1, 1]);
    }
  });

  it('the method and the body are the same', async () => {
    answers(faults.serverError(), faults.json(2));
    assert.equal(await ask({ q: 'a' }, 'posted'), 2);
    assert.deepEqual([second.requests[0]?.method, second.requests[0]?.body], ['POST', '{"q":"a"}']);
  });

  it('what the first one says of the request is believed', async () => {
    answers(faults.empty(404), faults.json(2));
    await assertRefused(await service.post('api/e'), 502, 'API call failed');
    assert.deepEqual(calls(), [1, 0]);
  });

  it('when all fail, the last one says how', async () => {
    answers(faults.empty(500), faults.empty(503));
    await assertRefused(await service.post('api/e'), 502, 'API call failed');
    assert.deepEqual(calls(), [1, 1]);
    const line = service.logs.findLast(({ message }) => message === 'API call failed');
    assert.equal(line?.fields.reason, 'upstream status 503');
  });

  it('an origin is not to blame for a client that leaves', async () => {
    await service.stop();
    service = await start('1h');
    answers(faults.serverError(), faults.json(2));
    assert.equal(await ask(), 2);
    answers(faults.serverError(), faults.hang());
    const leaving = new AbortController();
    const sent = { method: 'POST', headers: JSON_HEADERS, body: '{}', signal: leaving.signal };
    const gone = assert.rejects(fetch(endpointUrl(service, 'api/e'), sent), { name: 'AbortError' });
    await second.until(() => second.requests.length === 2);
    leaving.abort();
    await gone;
    await second.untilIdle();
    answers(faults.serverError(), faults.json(2));
    assert.equal(await ask(), 2);
    assert.deepEqual(calls(), [1, 3]);
  });

  it('one that has failed is asked last, until it has rested', async (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
    await service.stop();
    service = await start('30s');
    answers(faults.serverError(), faults.json(2));
    assert.equal(await ask(), 2);
    answers(faults.json(1), faults.json(2));
    t.mock.timers.tick(29_999);
    assert.equal(await ask(), 2);
    assert.deepEqual(calls(), [1, 2]);
    answers(faults.json(1), faults.serverError());
    assert.equal(await ask(), 1);
    t.mock.timers.tick(1);
    assert.equal(await ask(), 1);
    assert.deepEqual(calls(), [2, 1]);
  });
});
