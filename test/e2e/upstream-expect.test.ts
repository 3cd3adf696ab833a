/** `expect`: what an upstream's answer must be before it is signed or kept. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { assertRefused } from '../support/http.ts';
import { inTurn } from '../support/in-turn.ts';
import { suite } from '../support/lifetime.ts';
import { scrape } from '../support/metrics.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const bounded = { type: 'number', exclusiveMinimum: 0, maximum: 1e5 };
const price = { type: 'object', required: ['price'], properties: { price: bounded } };
const encoding = { type: 'int256', path: '$.price', times: '100' };
const fresh = (more: object = {}) => ({ expect: { fresh: { path: '$.time', maxAge: '1m', ...more } } });
const fitting = (properties: object, more: object = {}) => ({ expect: { schema: { properties, ...more } } });

const changing = `export default { name: 'changing', hooks: {
  onAfterApiCall: ({ endpoint }) => (endpoint === 'changed' ? { data: { price: 0 } } : undefined),
} };`;

describe('expect', async () => {
  const upstream = await upstreamFor(suite);
  const { files, plugins } = pluginFiles({ changing });
  const endpoints = {
    price: { encoding },
    raw: {},
    changed: { encoding },
    free: { expect: {} },
    success: fitting({ success: { const: true } }, { required: ['success'] }),
    choice: fitting({ status: { enum: Array.from({ length: 30 }, (_, i) => `ok ${i}`) } }),
    digits: fitting({ n: { items: { type: 'integer', exclusiveMaximum: 1e23, multipleOf: 7, pattern: '7' } } }),
    symbol: fitting({ id: { type: 'string', pattern: '^[A-Z]+$' } }),
    seconds: fresh(),
    milliseconds: fresh({ unit: 'ms' }),
    iso: fresh({ unit: 'iso' }),
    filtered: fresh({ path: "$.list[?(@.id=='a')].time" }),
    pair: {
      parameters: [
        { name: 'id', map: { 'A/USD': 'a' } },
        { name: 'at', in: 'none', default: 'time' },
      ],
      ...fresh({ path: "$.list[?(@.id=={id})]['{at}']" }),
    },
    both: { expect: { schema: price, ...fresh().expect } },
  };
  const api = { expect: { schema: price } };
  const settings = { plugins, openapi: true, metrics: { port: 0 } };
  const service = await serviceFor(suite, oneApi(upstream.url, endpoints, { api, settings }), { files });

  const details: unknown[] = [];
  const refused = async (endpoint: string, answer: unknown, error = 'API call failed') => {
    upstream.json('*', answer);
    const from = service.logs.length;
    await assertRefused(await service.post(`api/${endpoint}`), 502, error);
    const { fields } = service.logs.slice(from).find(({ fields }) => fields.reason !== undefined) ?? assert.fail();
    assert.deepEqual([fields.reason, fields.stage], ['unexpected', 'callApi']);
    details.push(fields.detail);
    return fields.detail;
  };
  const taken = async (endpoint: string, ...answers: unknown[]) => {
    for (const answer of answers) {
      upstream.json('*', answer);
      const response = await service.post(`api/${endpoint}`);
      assert.equal(response.status, 200, `${JSON.stringify(answer)}: ${await response.text()}`);
    }
  };

  it('refuses what does not fit the schema, and says the place and the rule', async () => {
    await taken('price', { price: 0.01 }, { price: 1e5, more: null });
    for (const endpoint of ['price', 'raw']) {
      const cases: [unknown, string][] = [
        [{ success: false, error: { code: 104 } }, 'must have required properties price'],
        [{ price: null }, '/price must be number'],
        [{ price: '91.23' }, '/price must be number'],
        [{ price: 'NaN' }, '/price must be number'],
        [{ price: 0 }, '/price must be > 0'],
        [{ price: -5 }, '/price must be > 0'],
        [{ price: 100_000.5 }, '/price must be <= 100000'],
        [[{ price: 5 }], 'must be object'],
        [null, 'must be object'],
        ['', 'must be object'],
      ];
      for (const [answer, rule] of cases) assert.equal(await refused(endpoint, answer), `unexpected answer: ${rule}`);
    }
    const right = ['14.0', '99999999999999999999995'];
    for (const n of [...right, '7.00000000000000000001', '9007199254740993.5', '7e-400', '18014398509481988.0001']) {
      // A pattern limits the time for the whole answer.
      upstream.text('*', `{"n":[${n}${',7'.repeat(3e4)}]}`, { type: 'application/json' });
      assert.equal((await service.post('api/digits')).status, right.includes(n) ? 200 : 502, n);
    }
  });

  it('refuses an empty answer as one that is null', async () => {
    upstream.on('*', faults.empty(200));
    await assertRefused(await service.post('api/raw'), 502, 'API call failed');
    await assertRefused(await service.post('api/seconds'), 502, 'No value found at path: $.time');
  });

  it('leaves other failures what they are', async () => {
    upstream.on('*', faults.serverError());
    await assertRefused(await service.post('api/price'), 502, 'API call failed');
    upstream.json('*', { price: 5 });
    const reasons = service.logs.flatMap(({ fields }) => fields.reason ?? []);
    assert.equal(reasons.at(-1), 'status_5xx');
  });

  it('has the endpoint win over its API', async () => {
    await taken('free', null, { success: false }, { price: -1 });
    await taken('success', { success: true });
    assert.equal(await refused('success', { success: false }), 'unexpected answer: /success must be equal to constant');
  });

  it('never shows what the upstream said, however long the rule is', async () => {
    assert.equal(await refused('choice', { status: 'LEAK' }), 'unexpected answer: /status does not fit its schema');
    const why = 'unexpected answer: /id must match the pattern ^[A-Z]+$';
    assert.equal(await refused('symbol', { id: 'LEAK 1' }), why);
    assert.equal(await refused('symbol', { id: 5 }), 'unexpected answer: /id must be string');
    assert.ok(!details.some((detail) => String(detail).includes('LEAK')));
  });

  it('looks at the upstream’s own answer, before a plugin changes it', async () => {
    upstream.json('*', { price: 5 });
    const response = await service.post('api/changed');
    assert.equal(JSON.parse(await response.text()).data, `0x${'0'.repeat(64)}`);
    assert.equal(await refused('changed', { price: 0 }), 'unexpected answer: /price must be > 0');
  });

  const at = (seconds: number) => Date.now() / 1000 + seconds;
  const both = () => [
    { id: 'b', time: 0 },
    { id: 'a', time: at(0) },
  ];

  it('takes a time that is no further from now than maxAge, in seconds', async () => {
    await taken('seconds', { time: at(0) }, { time: at(-50) }, { time: at(50) }, { time: String(Math.floor(at(0))) });
    for (const time of [at(-70), at(-7 * 86_400), 0, -1, '0', at(0) / 1000])
      assert.equal(await refused('seconds', { time }), 'unexpected answer: $.time is more than 60000 ms ago');
    for (const time of [at(70), at(0) * 1000, 1e300])
      assert.equal(await refused('seconds', { time }), 'unexpected answer: $.time is more than 60000 ms ahead');
    for (const time of [null, '', ' 5', '1e9', '0x5', true, [at(0)], {}, new Date().toISOString()])
      assert.equal(await refused('seconds', { time }), 'unexpected answer: $.time is no time in s');
  });

  it('takes milliseconds', async () => {
    await taken('milliseconds', { time: Date.now() }, { time: String(Date.now() - 50_000) });
    assert.equal(await refused('milliseconds', { time: at(0) }), 'unexpected answer: $.time is more than 60000 ms ago');
    assert.equal(await refused('milliseconds', { time: 'now' }), 'unexpected answer: $.time is no time in ms');
  });

  it('takes texts as of RFC 3339', async () => {
    const now = new Date().toISOString();
    const shifted = new Date(Date.now() + 2 * 3_600_000).toISOString().replace('Z', '+02:00');
    const spaced = now.toLowerCase().replace('t', ' ');
    await taken('iso', { time: now }, { time: shifted }, { time: spaced }, { time: now.replace(/\.\d+/, '') });
    for (const time of ['2020-02-29T00:00:00Z', '2016-12-31T23:59:60Z', '2017-01-01t05:29:60.5+05:30'])
      assert.equal(await refused('iso', { time }), 'unexpected answer: $.time is more than 60000 ms ago');
    const none = ['2026-13-01T00:00:00Z', '2026-02-30T00:00:00Z', '2025-02-29T23:59:59+01:00', '2026-01-01T24:00:00Z'];
    for (const time of [Date.now(), [now], now.slice(0, 19), now.slice(0, 10), ...none, new Date().toUTCString(), null])
      assert.equal(await refused('iso', { time }), 'unexpected answer: $.time is no time in iso');
  });

  it('says so where there is no time', async () => {
    const missing = (path: string) => `No value found at path: ${path}`;
    assert.equal(await refused('seconds', { at: 5 }, missing('$.time')), undefined);
    assert.equal(await refused('filtered', { list: [] }, missing("$.list[?(@.id=='a')].time")), undefined);
    await taken('filtered', { list: both() });
    const list = Array(60_000).fill({ id: 'b' });
    const long = "$.list[?(@.id=='a')].time the path takes too many steps on this document";
    assert.equal(await refused('filtered', { list }), `unexpected answer: ${long}`);
  });

  it('finds a time by what parameters are sent as', async () => {
    const path = "$.list[?(@.id=={id})]['{at}']";
    upstream.json('*', { list: both() });
    assert.equal((await service.post('api/pair', { id: 'A/USD' })).status, 200);
    const missing = `No value found at path: ${path}`;
    await assertRefused(await service.post('api/pair', { id: 'A/USD', at: 'x' }), 502, missing);
    await assertRefused(await service.post('api/pair', {}), 400, 'Missing required parameter(s): id');
  });

  it('a client that names what is not there shuts no upstream off, and has no shared answer made anew', async (t) => {
    const parameters = [{ name: 'id', in: 'none' }];
    const pair = { path: '/pairs', parameters, ...fresh({ path: '$.{id}' }) };
    const api = { breaker: { failures: 2, openFor: '1m' }, shareFor: '1m', retry: { attempts: 3 } };
    const own = await serviceFor(t, oneApi(upstream.url, { pair, other: {} }, { api }));
    upstream.json('*', { a: at(0) });
    const { length } = upstream.requests;
    for (const id of ['x', 'y', 'z', '__proto__'])
      await assertRefused(await own.post('api/pair', { id }), 502, 'No value found at path: $.{id}');
    assert.equal((await own.post('api/pair', { id: 'a' })).status, 200);
    assert.equal((await own.post('api/other')).status, 200);
    assert.equal(upstream.requests.length - length, 2);
  });

  it('looks at the schema first, then at the time', async () => {
    assert.equal(await refused('both', { success: false }), 'unexpected answer: must have required properties price');
    assert.equal(await refused('both', { price: 5, time: 0 }), 'unexpected answer: $.time is more than 60000 ms ago');
    await refused('both', { price: 5 }, 'No value found at path: $.time');
    await taken('both', { price: 5, time: at(0) });
  });

  it('counts as a failure of the upstream, and stands in the OpenAPI document', async () => {
    const labels = { api: 'api', endpoint: 'price', reason: 'unexpected' };
    assert.ok(((await scrape(service)).value('upstream_failures_total', labels) ?? 0) > 5);
    const { paths } = JSON.parse(await (await fetch(`${service.url}/openapi.json`)).text());
    const of = (name: string) => JSON.stringify(paths[`/endpoints/${service.ids[`api/${name}`]}`].post.responses[502]);
    assert.ok(of('seconds').includes('No value found at path: $.time'));
    assert.ok(!of('raw').includes('No value found'));
  });
});

describe('expect, and what is done about failures', async () => {
  const upstream = await upstreamFor(suite);
  const mirror = await upstreamFor(suite);
  const good = { price: 5 };
  const bad = { success: false, error: { code: 104 } };
  const expect = { schema: price };
  const endpoints = { e: {}, posted: { method: 'POST' }, kept: { cache: { maxAge: 100, staleIfError: '10m' } } };
  const apis = Object.entries({
    plain: {},
    retried: { retry: { attempts: 3 } },
    timeouts: { retry: { attempts: 3, on: ['timeout'] } },
    mirrored: { mirrors: [mirror.url] },
    broken: { breaker: { failures: 2, openFor: '1m' } },
  }).flatMap(([name, more]) => oneApi(`${upstream.url}/${name}`, endpoints, { api: { name, expect, ...more } }).apis);
  const service = await serviceFor(suite, { settings: { metrics: { port: 0 } }, apis });

  beforeEach(() => {
    upstream.json('*', bad);
    upstream.requests.length = 0;
    mirror.requests.length = 0;
  });

  it('is asked again', async () => {
    await assertRefused(await service.post('retried/e'), 502, 'API call failed');
    assert.equal(upstream.requests.length, 3);
    upstream.on('*', inTurn(faults.json(bad), faults.json(good)));
    assert.equal((await service.post('retried/e')).status, 200);
    assert.equal(upstream.requests.length, 5);
    assert.equal((await scrape(service)).value('upstream_retries_total', { api: 'retried', after: 'unexpected' }), 3);
  });

  it('is not asked again by another method than GET, or where the config names other failures', async () => {
    for (const name of ['retried/posted', 'timeouts/e'])
      await assertRefused(await service.post(name), 502, 'API call failed');
    assert.equal(upstream.requests.length, 2);
  });

  it('is asked of a mirror', async () => {
    mirror.json('*', good);
    assert.equal((await service.post('mirrored/e')).status, 200);
    assert.deepEqual([upstream.requests.length, mirror.requests.length], [1, 1]);
    mirror.json('*', bad);
    await assertRefused(await service.post('mirrored/e'), 502, 'API call failed');
  });

  it('opens the breaker', async () => {
    for (const _ of [1, 2]) await assertRefused(await service.post('broken/e'), 502, 'API call failed');
    await assertRefused(await service.post('broken/e'), 503, 'Upstream unavailable');
    assert.equal(upstream.requests.length, 2);
  });

  it('is never kept, and an older answer stands in', async () => {
    await assertRefused(await service.post('plain/kept'), 502, 'API call failed');
    await assertRefused(await service.post('plain/kept'), 502, 'API call failed');
    assert.equal(upstream.requests.length, 2);
    upstream.json('*', good);
    const before = await (await service.post('plain/kept')).text();
    upstream.json('*', bad);
    await setTimeout(120);
    const stale = await service.post('plain/kept');
    assert.equal(await stale.text(), before);
    assert.match(stale.headers.get('cache-status') ?? '', /detail=stale-if-error$/);
  });
});
