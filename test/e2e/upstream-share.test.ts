/** `apis[].shareFor`: equal upstream requests of an API are made once. */

import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { finished, submitted } from '../support/async.ts';
import { suite } from '../support/lifetime.ts';
import { pluginFile, pluginFiles } from '../support/plugin-files.ts';
import { type Block, oneApi, type RunningService, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { eventually } from '../support/wait.ts';

const names = Array.from({ length: 10 }, (_, i) => `n${i}`);
const encoding = (name: string, path = `$.${name}`) => ({ type: 'uint256', path, exact: true });
const path = '/all?names=many';
const endpoints: Readonly<Record<string, Block>> = {
  ...Object.fromEntries(names.map((name) => [name, { path, encoding: encoding(name) }])),
  other: { path: '/other', parameters: [{ name: 'q' }, { name: 'X-H', in: 'header' }] },
  posted: { path: '/other', method: 'POST', parameters: [{ name: 'q', in: 'body' }] },
  later: { path, mode: 'async', encoding: { ...encoding('n0'), type: 'int256' } },
  live: { path, mode: 'stream', encoding: { ...encoding('n0'), type: 'int128' } },
  raw: { path },
};
const SHARE_MS = 200;

describe('shareFor', async () => {
  const upstream = await upstreamFor(suite);
  const config = oneApi(upstream.url, endpoints, { api: { shareFor: '1m' } });
  const all = faults.json(Object.fromEntries(names.map((name, i) => [name, 100 + i])));

  beforeEach(() => {
    upstream.on('*', all);
    upstream.requests.length = 0;
  });

  const post = async (name: string, parameters: object, by: RunningService) => {
    const response = await by.post(`api/${name}`, parameters);
    const body: { data?: string; error?: string } = JSON.parse(await response.text());
    return { status: response.status, ...body };
  };

  it('ten endpoints of one answer, one call: each has its own value and signature', async (t) => {
    const own = await serviceFor(t, config);
    for (const [i, name] of names.entries()) {
      const response = await own.post(`api/${name}`);
      assert.equal(response.status, 200);
      const { data, endpointId } = await verifyEncoded(response, TEST_ADDRESS);
      assert.equal(BigInt(data), BigInt(100 + i));
      assert.equal(endpointId, own.ids[`api/${name}`]);
    }
    assert.equal(upstream.requests.length, 1);
  });

  it('those who come together share the call, and its failure, which is not kept', async (t) => {
    const own = await serviceFor(t, config);
    upstream.on('*', faults.slow(500, faults.serverError()));
    const failed = await Promise.all(names.map((name) => post(name, {}, own)));
    const outcomes = failed.map(({ status, error }) => `${status} ${error}`);
    assert.deepEqual(new Set(outcomes), new Set(['502 API call failed']));
    assert.equal(upstream.requests.length, 1);
    upstream.on('*', faults.slow(500, all));
    const answers = await Promise.all(names.map((name) => post(name, {}, own)));
    const values = answers.map(({ data }) => Number(data) - 100);
    assert.deepEqual(values, [...names.keys()]);
    assert.equal(upstream.requests.length, 2);
  });

  it('ends', async (t) => {
    const own = await serviceFor(t, oneApi(upstream.url, endpoints, { api: { shareFor: SHARE_MS } }));
    await post('n1', {}, own);
    await setTimeout(SHARE_MS + 20);
    await post('n2', {}, own);
    assert.equal(upstream.requests.length, 2);
  });

  it('the age of what is signed is in the log', async (t) => {
    const own = await serviceFor(t, config, { env: { LOG_FORMAT: 'json' } });
    await post('n1', {}, own);
    await setTimeout(100);
    await post('n2', {}, own);
    const ages = () => own.logs.flatMap(({ fields }) => (fields.ageMs === undefined ? [] : Number(fields.ageMs)));
    await eventually(() => ages().length >= 2);
    const [first = -1, second = 0] = ages();
    assert.ok(first >= 0 && first < second && second >= 95, `${ages()}`);
  });

  it('another method, URL, header or body is another request', async (t) => {
    const own = await serviceFor(t, config);
    const asked = [
      ['other', {}],
      ['other', { q: 'a' }],
      ['other', { q: 'a', 'X-H': 'b' }],
      ['other', { q: 'a', 'X-H': 'c' }],
      ['posted', {}],
      ['posted', { q: 'a' }],
    ] as const;
    for (const [name, parameters] of [...asked, ...asked])
      assert.equal((await post(name, parameters, own)).status, 200);
    assert.equal(upstream.requests.length, asked.length);
  });

  it('what a client says of its trace makes no other request of it', async (t) => {
    const own = await serviceFor(t, config);
    for (const id of ['1', '2', '3']) {
      const traceparent = `00-${id.repeat(32)}-${id.repeat(16)}-01`;
      const response = await own.post('api/n0', {}, { traceparent, tracestate: `a=${id}`, 'X-Request-Id': id });
      assert.equal(response.status, 200);
    }
    assert.equal(upstream.requests.length, 1);
    assert.equal(upstream.requests[0]?.headers['x-client-request-id'], '1');
  });

  it('async and stream endpoints take no part', async (t) => {
    const own = await serviceFor(t, config);
    await post('n0', {}, own);
    assert.equal((await own.post('api/live')).status, 200);
    await finished(own, await submitted(await own.post('api/later')));
    assert.equal(upstream.requests.length, 3);
  });

  it('hooks are those of each request', async (t) => {
    const source = 'onAfterApiCall: ({ response }) => ({ data: { ...response.data, n0: response.data.n0 + 1 } })';
    const { files, plugins } = pluginFiles({ p: pluginFile('p', source) });
    const own = await serviceFor(t, { ...config, settings: { plugins } }, { files });
    for (let count = 0; count < 2; count++) assert.equal(BigInt((await post('n0', {}, own)).data ?? 0), 101n);
    assert.equal(upstream.requests.length, 1);
  });

  it('takes one call of a quota; without it every request is a call', async (t) => {
    const config = oneApi(upstream.url, endpoints, { api: { shareFor: '1m', quota: { perDay: 1 } } });
    const limited = await serviceFor(t, config);
    for (const name of ['n0', 'n1', 'raw']) assert.equal((await post(name, {}, limited)).status, 200);
    assert.equal((await post('other', {}, limited)).error, 'Upstream unavailable');
    const plain = await serviceFor(t, oneApi(upstream.url, endpoints));
    for (const name of ['n0', 'n1']) await post(name, {}, plain);
    assert.equal(upstream.requests.length, 3);
  });

  it('values of one answer, found by a parameter that is not sent', async (t) => {
    const parameters = [{ name: 'id', in: 'none', required: true }];
    const found = { path, parameters, encoding: { type: 'uint256', path: '$.{id}', exact: true } };
    const own = await serviceFor(t, oneApi(upstream.url, { found }, { api: { shareFor: '1m' } }));
    for (const [i, id] of names.entries())
      assert.equal(BigInt((await post('found', { id }, own)).data ?? 0), BigInt(100 + i));
    assert.equal(upstream.requests.length, 1);
  });

  it('what is not as expected is shared no more, and a retry makes a new call', async (t) => {
    const schema = (minimum: number) => ({ schema: { properties: { n0: { minimum } } } });
    const { n0 = {}, n1 = {}, n2 = {} } = endpoints;
    const strict = { ...n1, expect: schema(500) };
    const again = { ...n2, expect: schema(500), retry: { attempts: 2 } };
    const own = await serviceFor(t, oneApi(upstream.url, { n0, strict, again }, { api: { shareFor: '1m' } }));
    const value = async (name: string) => (await post(name, {}, own)).data;
    const calls = (count: number) => assert.equal(upstream.requests.length, count);
    assert.equal((await post('n0', {}, own)).status, 200);
    for (const count of [1, 2]) {
      assert.equal((await post('strict', {}, own)).error, 'API call failed');
      calls(count);
    }
    assert.equal((await post('n0', {}, own)).status, 200);
    calls(3);
    upstream.on('*', faults.json({ n0: 500, n2: 7 }));
    assert.deepEqual([Number(await value('again')), upstream.requests.length], [7, 4]);
    assert.deepEqual([Number(await value('n0')), upstream.requests.length], [500, 4]);
  });
});
