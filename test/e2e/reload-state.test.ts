/** Async records, buckets of the rate limit and upstream slots live on over a reload. */

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { finished, submitted } from '../support/async.ts';
import { assertRefused } from '../support/http.ts';
import { plugin, quiet, reload, reloadable } from '../support/reload.ts';
import { type Block, encoding, oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { verifyEncoded } from '../support/verify.ts';

const HOUR = 3_600_000;

const { upstream, held, arrived, release } = await reloadable();

upstream.json('/price', { price: 1 });

const start = (t: TestContext, config: Block) => serviceFor(t, config, { files: { 'one.mjs': quiet('one') } });

describe('async records live on', () => {
  const config = (endpoints: Record<string, Block>, more: Block = {}) => oneApi(upstream.url, endpoints, more);
  const server = { rateLimit: { max: 1_000_000, trustForwardedFor: true } };
  const later = { mode: 'async', encoding };
  const both = () => config({ price: later, held: later }, { api: { timeout: 30_000 }, server });

  it('one that is complete is readable as it was', async (t) => {
    const service = await start(t, both());
    const submission = await submitted(await service.post('api/price'));
    const record = await finished(service, submission);
    await reload(service, config({ price: {} }, plugin('one')));
    assert.deepEqual(await finished(service, submission), record);
    assert.equal(record.status, 'complete');
  });

  it('one that is processing goes on, although its endpoint is gone', async (t) => {
    const service = await start(t, both());
    const { requestId, pollUrl } = await submitted(await service.post('api/held'));
    await arrived(1);
    assert.equal((await reload(service, config({ price: {} }))).done, true);
    assert.equal((await reload(service, config({ price: {} }, plugin('one')))).done, true);
    const pending = await fetch(service.url + pollUrl);
    assert.deepEqual(await pending.json(), { requestId, status: 'processing', pollUrl });
    release();
    const { status, requestId: _, ...signed } = await finished(service, { pollUrl });
    assert.equal(status, 'complete');
    assert.equal(BigInt((await verifyEncoded(signed, TEST_ADDRESS)).data), 5n);
  });

  it('one that fails after the reload says so', async (t) => {
    const service = await start(t, both());
    const submission = await submitted(await service.post('api/held'));
    await arrived(1);
    await reload(service, both());
    for (const res of held.splice(0)) res.writeHead(500).end();
    const failed = { ...submission, status: 'failed', error: 'API call failed' };
    assert.deepEqual(await finished(service, submission), failed);
  });

  it('their number stays bounded: those of the config before take room', async (t) => {
    const service = await start(t, both());
    const submit = (_: unknown, turn: number) =>
      service.post('api/held', {}, { 'X-Forwarded-For': `203.0.113.${turn % 4}` });
    const posts = await Promise.all(Array.from({ length: 99 }, submit));
    assert.deepEqual(new Set(posts.map(({ status }) => status)), new Set([202]));
    await reload(service, both());
    assert.equal((await service.post('api/held')).status, 202);
    await assertRefused(await service.post('api/held'), 503, 'Service Unavailable');
    // Half of them wait for a slot.
    await arrived(50);
    release();
    await arrived(50);
    release();
  });
});

describe('buckets of the rate limit live on', () => {
  const config = (rateLimit: Block, more: Block = {}) =>
    oneApi(upstream.url, { price: {} }, { server: { rateLimit: { window: HOUR, ...rateLimit } }, ...more });

  it('who is limited stays so, unless the limits are others', async (t) => {
    const service = await start(t, config({ max: 2 }));
    const limited = async () => assertRefused(await service.post('api/price'), 429, 'Too Many Requests');
    for (const _ of 'ab') assert.equal((await service.post('api/price')).status, 200);
    await limited();
    assert.equal((await reload(service, config({ max: 2 }, plugin('one')))).done, true);
    await limited();
    assert.equal((await reload(service, config({ max: 2 }, { nonsense: 1 }))).done, false);
    await limited();
    assert.equal((await reload(service, config({ max: 2, x402: { max: 5 } }))).done, true);
    await limited();
    assert.equal((await reload(service, config({ max: 1 }))).done, true);
    assert.equal((await service.post('api/price')).status, 200);
    await limited();
    assert.equal((await reload(service, config({ max: 1, window: HOUR - 1 }))).done, true);
    assert.equal((await service.post('api/price')).status, 200);
    await limited();
  });

  it('half a bucket stays half a bucket', async (t) => {
    const service = await start(t, config({ max: 2 }));
    assert.equal((await service.post('api/price')).status, 200);
    await reload(service);
    assert.equal((await service.post('api/price')).status, 200);
    await assertRefused(await service.post('api/price'), 429, 'Too Many Requests');
  });
});

describe('upstream slots are one number for all configs', () => {
  const api = (name: string, path: string, timeout: number) =>
    oneApi(upstream.url, { e: { path } }, { api: { name, timeout } }).apis;
  const config = (maxConcurrentApiCalls: number, more: Block = {}) => ({
    ...more,
    settings: { maxConcurrentApiCalls },
    apis: [...api('patient', '/held', 30_000), ...api('hasty', '/price', 200)],
  });

  it('a call of the config before takes a slot of the one after, whatever the limits', async (t) => {
    const service = await start(t, config(1));
    const answer = service.post('patient/e');
    await arrived(1);
    await reload(service, config(1, { server: { rateLimit: { max: 999 } } }));
    await assertRefused(await service.post('hasty/e'), 503, 'Server busy');
    await reload(service, config(2));
    assert.equal((await service.post('hasty/e')).status, 200);
    await reload(service, config(1));
    await assertRefused(await service.post('hasty/e'), 503, 'Server busy');
    release();
    assert.equal((await answer).status, 200);
    assert.equal((await service.post('hasty/e')).status, 200);
  });

  it('also when the APIs are others; a config that cannot be used changes nothing', async (t) => {
    const service = await start(t, config(1));
    const answer = service.post('patient/e');
    await arrived(1);
    // The name of its API is no part of an endpoint's ID.
    const others = { ...config(1), apis: api('other', '/price', 200) };
    assert.equal((await reload(service, others)).done, true);
    await assertRefused(await service.post('hasty/e'), 503, 'Server busy');
    const lame = `export default { name: 'lame', setup: () => ({ start() { throw new Error('lame'); } }) };`;
    await writeFile(join(service.folder, 'lame.mjs'), lame);
    const unusable = { ...others, settings: { maxConcurrentApiCalls: 9, plugins: [{ source: './lame.mjs' }] } };
    assert.equal((await reload(service, unusable)).done, false);
    await assertRefused(await service.post('hasty/e'), 503, 'Server busy');
    release();
    assert.equal((await answer).status, 200);
    assert.equal((await service.post('hasty/e')).status, 200);
  });
});
