/** `apis[].retry` calls an upstream again after failures that may pass, within the API's timeout. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { assertRefused, endpointUrl, rawDataOf } from '../support/http.ts';
import { inTurn } from '../support/in-turn.ts';
import { leavingFetch } from '../support/leaving-client.ts';
import { suite } from '../support/lifetime.ts';
import { scrape } from '../support/metrics.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, type Handler, startUpstream, upstreamFor } from '../support/upstream.ts';

const TIMEOUT = 3000;

describe('retry', async () => {
  const upstream = await upstreamFor(suite);
  const retry = { attempts: 3 };
  const endpoints = {
    e: {},
    posted: { method: 'POST' },
    allowed: { method: 'POST', retry: { ...retry, methods: ['POST'] } },
    timeouts: { retry: { ...retry, on: ['timeout'] } },
  };
  const service = await serviceFor(suite, oneApi(upstream.url, endpoints, { api: { retry, timeout: TIMEOUT } }));

  beforeEach(() => upstream.requests.splice(0));

  const answers = (...handlers: Handler[]) => upstream.on('*', inTurn(...handlers));
  /** Asserts that the upstream is called so often by an endpoint until it has its answer. */
  const succeeds = async (endpoint: string, calls: number, ...failing: Handler[]) => {
    answers(...failing, faults.json(7));
    assert.equal(await rawDataOf(await service.post(`api/${endpoint}`)), 7);
    assert.equal(upstream.requests.length, calls);
  };
  /** Asserts that the upstream is called so often by an endpoint, which gives up. */
  const givesUp = async (endpoint: string, calls: number, ...failing: Handler[]) => {
    answers(...failing, faults.json(7));
    await assertRefused(await service.post(`api/${endpoint}`), 502, 'API call failed');
    assert.equal(upstream.requests.length, calls);
  };

  const passing = {
    'a 500': faults.serverError(),
    'a 429': faults.empty(429),
    'a connection that is reset': faults.reset(),
    'an answer that is cut off': faults.closeHalfWay(),
    'no answer in the time of an attempt': faults.hang(),
  };
  for (const [what, failing] of Object.entries(passing))
    it(`calls again after ${what}`, () => succeeds('e', 2, failing));

  it('gives up after the attempts, with the last failure', async () => {
    await givesUp('e', 3, faults.empty(429), faults.serverError(), faults.empty(503));
    const { fields } = service.logs.findLast(({ message }) => message === 'API call failed') ?? assert.fail();
    assert.equal(fields.detail, 'upstream status 503');
  });

  it('waits 50 ms or longer, and as long as Retry-After wants', async () => {
    const times: number[] = [];
    const timed =
      (handler: Handler): Handler =>
      (...request) => {
        times.push(performance.now());
        return handler(...request);
      };
    const limited: Handler = (_req, res) => void res.writeHead(429, { 'Retry-After': '1' }).end();
    answers(timed(faults.serverError()), timed(limited), timed(faults.json(7)));
    assert.equal(await rawDataOf(await service.post('api/e')), 7);
    const [first = 0, second = 0, third = 0] = times;
    // The time is the promise here: a call that comes sooner breaks it, a later one does not.
    assert.ok(second - first >= 45, `${second - first} ms`);
    assert.ok(third - second >= 990, `${third - second} ms`);
  });

  it('gives up at once where Retry-After is beyond the timeout', () =>
    givesUp('e', 1, (_req, res) => void res.writeHead(503, { 'Retry-After': '60' }).end()));

  it('does not call again after a 404, or after an answer that cannot be signed', async () => {
    const unusable = [faults.invalidJson(), faults.big(2 ** 20 + 1), faults.codedBytes('gzip', Buffer.from('7'))];
    for (const failing of [faults.empty(404), faults.empty(301), ...unusable]) {
      upstream.requests.splice(0);
      await givesUp('e', 1, failing);
    }
  });

  it('repeats no other method than GET, unless the config allows it', async () => {
    await givesUp('posted', 1, faults.serverError());
    await succeeds('allowed', 3, faults.serverError());
  });

  it('calls again only after the failures that the config names', async () => {
    await givesUp('timeouts', 1, faults.serverError());
    await succeeds('timeouts', 3, faults.hang());
  });

  it('stops when the client leaves', async () => {
    answers(faults.serverError(), faults.hang());
    const leave = leavingFetch(endpointUrl(service, 'api/e'));
    await upstream.untilRequested('/e', 1);
    await leave();
    await upstream.untilIdle();
    answers(faults.json(8));
    assert.equal(await rawDataOf(await service.post('api/e')), 8);
  });
});

it('retries are counted by API and failure', async (t) => {
  const upstream = await upstreamFor(t, { '*': inTurn(faults.serverError(), faults.empty(429), faults.json(7)) });
  const settings = { metrics: { port: 0 } };
  const service = await serviceFor(t, oneApi(upstream.url, { e: {} }, { api: { retry: { attempts: 3 } }, settings }));
  await (await service.post('api/e')).text();
  const found = await scrape(service);
  const counts = { 'api connect': 0, 'api timeout': 0, 'api 5xx': 1, 'api 429': 1 };
  assert.deepEqual(found.table('upstream_retries_total'), counts);
});

it('a refused connection is tried again, as often as the config says', async (t) => {
  const gone = await startUpstream();
  await gone.close();
  const api = { retry: { attempts: 3 } };
  const service = await serviceFor(t, oneApi(gone.url, { e: {} }, { api, settings: { metrics: { port: 0 } } }));
  await assertRefused(await service.post('api/e'), 502, 'API call failed');
  const found = await scrape(service);
  assert.deepEqual(found.happened('upstream_retries_total'), { 'api connect': 2 });
  const labels = { api: 'api', endpoint: 'e', outcome: 'failed', reason: 'connect' };
  assert.equal(found.value('upstream_call_seconds_count', labels), 3);
});
