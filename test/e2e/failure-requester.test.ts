/** What a client got wrong is no failure of the upstream. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { assertFiring, withoutPromtool } from '../support/alerts.ts';
import { type Scrape, scrapeAfter } from '../support/metrics.ts';
import { served } from '../support/served.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

const parameters = [{ name: 'id' }, { name: 'key', fixed: 'k' }];
const delegated = { type: '*', path: '*' };

async function start(t: TestContext, env: Readonly<Record<string, string>> = {}) {
  const statuses = [400, 401, 403, 404, 410, 422, 429];
  const routes = statuses.map((status) => [`/${status}`, faults.json({}, status)]);
  const scaled = { type: 'int256', times: '*' };
  const endpoints = {
    ...Object.fromEntries(statuses.map((status) => [`e${status}`, { path: `/${status}`, parameters }])),
    later: { path: '/404?later', parameters, mode: 'async' },
    body: { path: '/422', method: 'POST', parameters: [{ name: 'id', in: 'body' }] },
    chosen: { path: '/price', encoding: delegated },
    scaled: { path: '/price', encoding: { ...scaled, path: '$.price' } },
    broken: { path: '/price', encoding: { ...scaled, path: '$.name' } },
  };
  const mirror = await upstreamFor(t, { '*': faults.json({ price: 2 }) });
  const api = await served(t, endpoints, {
    answers: { ...Object.fromEntries(routes), '/price': faults.json({ price: 1, name: 'ether' }) },
    settings: { metrics: { port: 0 } },
    api: { breaker: { failures: 1 }, retry: { attempts: 3 }, mirrors: [mirror.url] },
    env,
  });
  const fails = (name: string, given: object, error = 'API call failed') => api.refused(502, error, name, given);
  return { ...api, mirror, fails };
}

describe('a request that its client got wrong', () => {
  it('is of the class requester: never a failure of the upstream, nor tried again', async (t) => {
    const { service, upstream, mirror, fails } = await start(t, { LOG_FORMAT: 'json' });
    for (const status of [400, 404, 422]) await fails(`e${status}`, { id: 1 });
    await fails('chosen', { _type: 'int256', _path: '$.nope' }, 'No value found at path: $.nope');
    await fails('chosen', { _type: 'bool', _path: '$.name' });
    const found = await scrapeAfter(service, 5);
    assert.deepEqual(found.happened('upstream_failures_total'), {});
    assert.deepEqual(found.happened('failures_total'), {
      ...{ 'api e400 requester': 1, 'api e404 requester': 1, 'api e422 requester': 1 },
      'api chosen requester': 2,
    });
    assert.deepEqual([upstream.requests.length, mirror.requests.length], [5, 0]);
    assert.equal(found.value('upstream_breakers_open'), 0);
    const lines = service.logs.filter(({ message }) => message === 'request');
    const reasons = [
      ...[400, 404, 422].map((status) => `upstream status ${status} to what the client asked for`),
      'the path that the client has chosen finds nothing',
      'a text of 5 characters is no value for bool',
    ];
    assert.deepEqual(
      lines.map(({ level, fields }) => [level, fields.reason, fields.detail]),
      reasons.map((detail) => ['info', 'requester', detail]),
    );
    assert.ok(!service.logs.some(({ level, fields }) => level === 'warn' && fields.requestId !== undefined));
  });

  it('is not one where it gave no value, or where the upstream complains of something else', async (t) => {
    const { service, fails } = await start(t);
    for (const status of [400, 404, 422]) await fails(`e${status}`, { id: null, key: 'x', other: 1 });
    for (const status of [401, 403, 410]) await fails(`e${status}`, { id: 1 });
    const found = await scrapeAfter(service, 6);
    assert.deepEqual(
      Object.keys(found.happened('upstream_failures_total')),
      [400, 401, 403, 404, 410, 422].map((status) => `api e${status} status_4xx`),
    );
  });

  it('says why in the text of the log, too, at info', async (t) => {
    const { service } = await start(t);
    await service.post('api/e404', { id: 1 });
    const line = service.logs.find(({ message }) => / 502 /.test(message)) ?? assert.fail();
    assert.deepEqual([line.level, line.fields.reason], ['info', 'requester']);
    assert.equal(line.fields.detail, 'upstream status 404 to what the client asked for');
  });

  it('says why at info also where it fails after its response', async (t) => {
    for (const env of [{}, { LOG_FORMAT: 'json' }]) {
      const { service } = await start(t, env);
      assert.equal((await service.post('api/later', { id: 1 })).status, 202);
      const told = () => service.logs.filter(({ fields }) => fields.reason === 'requester');
      const lines = await eventually(() => (told().length > 0 ? told() : undefined), 'the end of a request');
      assert.deepEqual(
        lines.map(({ level, message, fields }) => [level, message, fields.endpoint, fields.detail]),
        [['info', 'API call failed', 'api/later', 'upstream status 404 to what the client asked for']],
      );
    }
  });

  it('has given a value with null in a body, which is one', async (t) => {
    const { service, fails } = await start(t);
    await fails('body', { id: null });
    assert.deepEqual((await scrapeAfter(service, 1)).happened('failures_total'), { 'api body requester': 1 });
  });

  it('is at fault for a factor alone only where another one would do', async (t) => {
    const { service, fails } = await start(t);
    for (const endpoint of ['scaled', 'broken']) await fails(endpoint, { _times: '1e77' });
    const found = await scrapeAfter(service, 2);
    assert.deepEqual(found.happened('failures_total'), { 'api scaled requester': 1, 'api broken encode': 1 });
    assert.deepEqual(found.happened('upstream_failures_total'), { 'api broken encode': 1 });
  });

  it('fires no alert', { skip: withoutPromtool }, async (t) => {
    const { service } = await start(t);
    const seen: Scrape[] = [];
    for (let count = 1; count <= 6; count++) {
      await service.post('api/e404', { id: 1 });
      await service.post('api/later', { id: 1 });
      seen.push(await scrapeAfter(service, 2 * count));
    }
    const alerts = ['RequestsFail', 'BackgroundRequestsFail', 'UpstreamFails'];
    const steps = seen.map((scrape, i) => ({ scrape, minutes: i === 0 ? 45 : 3 }));
    await assertFiring(t, steps, alerts, []);
  });
});
