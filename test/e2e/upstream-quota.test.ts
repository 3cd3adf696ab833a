/** `apis[].quota`, and what becomes of an upstream's `Retry-After`. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { folderWith } from '../cli/run.ts';
import { describeServers, redisFor } from '../state/redis-server.ts';
import { scrape } from '../support/metrics.ts';
import { reload } from '../support/reload.ts';
import { type Block, oneApi, type RunningService, serviceFor } from '../support/service.ts';
import { faults, type Handler, upstreamFor } from '../support/upstream.ts';
import { retried } from '../support/wait.ts';

/** The clock of the service stands still at noon, until it is moved. */
function clockAt(t: TestContext, time = '2030-05-05T12:00:00.000Z') {
  let now = Date.parse(time);
  t.mock.method(Date, 'now', () => now);
  return (milliseconds: number) => {
    now += milliseconds;
  };
}

const later =
  (seconds: number | string, status = 429): Handler =>
  (_, response) => {
    response.writeHead(status, { 'Retry-After': String(seconds) });
    response.end();
  };

/** Status, error or value, and seconds to wait. */
async function ask(service: RunningService, name = 'e', parameters: object = {}) {
  const response = await service.post(`api/${name}`, parameters);
  const { error, rawData }: { error?: string; rawData?: unknown } = JSON.parse(await response.text());
  return [response.status, error ?? rawData, response.headers.get('retry-after')];
}

const UNAVAILABLE = 'Upstream unavailable';
const FAILED = 'API call failed';
const endpoints = { e: {}, other: {} };

async function start(t: TestContext, api: Block, settings: Block = {}, more: Readonly<Record<string, Block>> = {}) {
  const upstream = await upstreamFor(t, { '*': faults.json(7) });
  const config = oneApi(upstream.url, { ...endpoints, ...more }, { api, settings });
  return { upstream, config, service: await serviceFor(t, config) };
}

describe('quota', () => {
  it('allows so many calls in a calendar day, of all endpoints, and says when the next begins', async (t) => {
    const pass = clockAt(t);
    const { upstream, service } = await start(t, { quota: { perDay: 3 } });
    const three = await Promise.all([ask(service), ask(service, 'other'), ask(service)]);
    assert.deepEqual(three, Array(3).fill([200, 7, null]));
    assert.deepEqual(await ask(service), [503, UNAVAILABLE, String(12 * 3600)]);
    pass(12 * 3_600_000 - 1500);
    assert.deepEqual(await ask(service, 'other'), [503, UNAVAILABLE, '2']);
    assert.equal(upstream.requests.length, 3);
    const { level, fields } = service.logs.findLast(({ fields: { detail } }) => detail !== undefined) ?? assert.fail();
    assert.deepEqual([fields.detail, level], ['the quota is used up: perDay', level]);
    pass(1500);
    assert.deepEqual(await ask(service), [200, 7, null]);
  });

  it('counts each window by itself; the one that ends last says when', async (t) => {
    const pass = clockAt(t, '2030-05-05T12:30:59.400Z');
    const { upstream, service } = await start(t, { quota: { perSecond: 2, perMinute: 3, perHour: 5 } });
    const statuses = async (count: number) => {
      const answers = await Promise.all(Array.from({ length: count }, () => ask(service)));
      return answers.map(([status, , wait]) => (status === 200 ? 200 : wait)).toSorted();
    };
    assert.deepEqual(await statuses(3), ['1', 200, 200].toSorted());
    pass(600);
    assert.deepEqual(await statuses(3), ['1', 200, 200].toSorted());
    pass(1000);
    assert.deepEqual(await statuses(2), ['1739', 200].toSorted());
    assert.equal(upstream.requests.length, 5);
  });

  it('counts attempts of a retry, and nothing of what the cache has', async (t) => {
    clockAt(t);
    const kept = { c: { cache: { maxAge: 60_000 } } };
    const { upstream, service } = await start(t, { quota: { perDay: 4 }, retry: { attempts: 2 } }, {}, kept);
    upstream.on('/e', faults.serverError());
    assert.deepEqual(await ask(service), [502, FAILED, null]);
    for (let count = 0; count < 3; count++) assert.deepEqual(await ask(service, 'c'), [200, 7, null]);
    // The second attempt is refused: what the upstream said is what counts.
    upstream.requests.length = 0;
    assert.deepEqual(await ask(service), [502, FAILED, null]);
    assert.equal(upstream.requests.length, 1);
  });

  it('counts anew where the clock was far ahead, and is set back', async (t) => {
    const pass = clockAt(t);
    const year = 365 * 86_400_000;
    const { upstream, service } = await start(t, { quota: { perSecond: 1, perDay: 2 } });
    pass(year);
    upstream.on('*', later(300));
    assert.deepEqual(await ask(service), [502, FAILED, '300']);
    pass(-year);
    upstream.on('*', faults.json(7));
    assert.deepEqual(await ask(service), [200, 7, null]);
    pass(1000);
    assert.deepEqual(await ask(service), [200, 7, null]);
    pass(1000);
    assert.deepEqual(await ask(service), [503, UNAVAILABLE, String(12 * 3600 - 2)]);
  });

  it('outlives a reload, also one that changes it', async (t) => {
    clockAt(t);
    const { config, service } = await start(t, { quota: { perDay: 2 } });
    assert.deepEqual(await ask(service), [200, 7, null]);
    const apis = config.apis.map((api) => ({ ...api, quota: { perHour: 2, perDay: 9 } }));
    await reload(service, { ...config, apis });
    assert.deepEqual(await ask(service), [200, 7, null]);
    assert.deepEqual((await ask(service))[0], 503);
  });

  it('lets a stale answer stand in, and shows what is used', async (t) => {
    const pass = clockAt(t);
    const cache = { maxAge: 1, staleIfError: '1h' };
    const { service } = await start(t, { quota: { perDay: 1 } }, { metrics: { port: 0 } }, { c: { cache } });
    const ratio = async () => (await scrape(service)).value('upstream_quota_used_ratio');
    assert.equal(await ratio(), 0);
    assert.deepEqual(await ask(service, 'c'), [200, 7, null]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.deepEqual(await ask(service, 'c'), [200, 7, null]);
    assert.deepEqual((await ask(service))[0], 503);
    assert.equal(await ratio(), 1);
    pass(86_400_000);
    assert.equal(await ratio(), 0);
  });
});

describe('Retry-After of an upstream', () => {
  it('is told with the 502, with or without a quota; without one it stops nothing', async (t) => {
    const { upstream, service } = await start(t, {});
    for (const [status, said, told] of [
      [429, 30, '30'],
      [503, 0, '0'],
      [500, 7, '7'],
      [404, '999999999', '999999999'],
      [429, 'soon', null],
      [429, '1.5 \t', '2'],
      [503, '-5', null],
      [429, 'page 5', null],
      [429, 'page: 5', null],
    ] as const) {
      upstream.on('*', later(said, status));
      assert.deepEqual(await ask(service), [502, FAILED, told]);
    }
    assert.equal(upstream.requests.length, 9);
  });

  it('is a date in any form of RFC 9110, which is in UTC wherever the service runs', async (t) => {
    const { TZ } = process.env;
    process.env.TZ = 'Asia/Tokyo';
    t.after(() => (TZ === undefined ? delete process.env.TZ : Object.assign(process.env, { TZ })));
    const { upstream, service } = await start(t, {});
    const until = new Date(Date.now() + 3_600_000);
    const weekday = until.toLocaleDateString('en', { weekday: 'long', timeZone: 'UTC' });
    const date = until.toUTCString();
    const east = new Date(until.getTime() + 32_400_000).toUTCString();
    const [day = '', number = '', month = '', year = '', time = ''] = date.replace(',', '').split(' ');
    for (const said of [
      date,
      `${weekday}, ${number}-${month}-${year.slice(2)} ${time} GMT`,
      `${day} ${month} ${number.replace(/^0/, ' ')} ${time} ${year}`,
      // Not of RFC 9110, but some servers write a zone in digits.
      east.replace('GMT', '+0900'),
      `${until.toISOString().slice(0, 19)}+0000`,
    ]) {
      upstream.on('*', later(said, 503));
      const [, , told] = await ask(service);
      assert.ok(Number(told) > 3_000 && Number(told) <= 3_600, `${said}: ${told}`);
    }
  });

  it('stops calls of the API until then where there is a quota', async (t) => {
    const pass = clockAt(t);
    const { upstream, service } = await start(t, { quota: {} });
    upstream.on('*', later(30));
    assert.deepEqual(await ask(service), [502, FAILED, '30']);
    for (let count = 0; count < 11; count++) assert.deepEqual(await ask(service, 'other'), [503, UNAVAILABLE, '30']);
    assert.equal(upstream.requests.length, 1);
    upstream.json('*', 8);
    pass(29_500);
    assert.deepEqual(await ask(service), [503, UNAVAILABLE, '1']);
    pass(500);
    assert.deepEqual(await ask(service), [200, 8, null]);
  });

  it('loses no count of calls by a fraction of a millisecond', async (t) => {
    const pass = clockAt(t);
    const state = { type: 'file', path: join(await folderWith(t), 'state') };
    const { upstream, service } = await start(t, { quota: { perDay: 2 } }, { state });
    assert.deepEqual(await ask(service), [200, 7, null]);
    upstream.on('*', later('8.0305'));
    assert.deepEqual(await ask(service), [502, FAILED, '9']);
    pass(9000);
    assert.deepEqual(await ask(service), [503, UNAVAILABLE, String(12 * 3600 - 9)]);
  });

  it('a date counts, five minutes at most; other statuses and 429 without it stop nothing', async (t) => {
    const pass = clockAt(t);
    const { upstream, service } = await start(t, { quota: {} });
    for (const fault of [later(30, 500), later(30, 404), faults.empty(429), later('soon')]) {
      upstream.on('*', fault);
      assert.equal((await ask(service))[0], 502);
    }
    upstream.on('*', later('Sun, 05 May 2030 12:00:10 GMT', 503));
    assert.deepEqual(await ask(service), [502, FAILED, '10']);
    assert.deepEqual(await ask(service), [503, UNAVAILABLE, '10']);
    pass(10_000);
    upstream.on('*', later(86_400));
    assert.deepEqual(await ask(service), [502, FAILED, '86400']);
    assert.deepEqual(await ask(service), [503, UNAVAILABLE, '300']);
    assert.equal(upstream.requests.length, 6);
  });
});

describeServers('a quota of replicas', (program) => {
  it('counts for all of them, a pause too; while the engine is away each counts for itself', async (t) => {
    const redis = await redisFor(t, program);
    const pass = clockAt(t);
    const upstream = await upstreamFor(t, { '*': faults.json(7) });
    const settings = { state: { type: 'redis', url: redis.url } };
    const config = oneApi(upstream.url, endpoints, { api: { quota: { perDay: 50 } }, settings });
    const [one, two] = [await serviceFor(t, config), await serviceFor(t, config)];
    const answers = await Promise.all(Array.from({ length: 60 }, (_, i) => ask(i % 2 === 0 ? one : two)));
    assert.equal(answers.filter(([status]) => status === 200).length, 50);
    assert.equal(upstream.requests.length, 50);
    pass(86_400_000);
    upstream.on('*', later(60));
    assert.deepEqual(await ask(one), [502, FAILED, '60']);
    await retried(async () => assert.deepEqual(await ask(two), [503, UNAVAILABLE, '60']));
    pass(60_000);
    upstream.json('*', 8);
    assert.deepEqual(await ask(two), [200, 8, null]);
    await redis.kill();
    upstream.requests.length = 0;
    const alone = await Promise.all(Array.from({ length: 60 }, () => ask(two)));
    const count = alone.filter(([status]) => status === 200).length;
    assert.ok(count >= 40 && count < 50, `${count}`);
    assert.equal(upstream.requests.length, count);
  });
});
