/** State lives on over a reload. */

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, it, type TestContext } from 'node:test';
import { finished, submitted } from '../support/async.ts';
import { assertRefused } from '../support/http.ts';
import { reload, reloadable } from '../support/reload.ts';
import { type Block, encoding, oneApi, serviceFor, type startTestService, TEST_ADDRESS } from '../support/service.ts';
import { verifyEncoded } from '../support/verify.ts';

const HOUR = 3_600_000;
/** Does nothing, but is another plugin. */
const quiet = (name: string) => `export default { name: '${name}', hooks: { onResponseSent() {} } };`;
/** A plugin that owns keys at the top and under `server`. */
const SDK = new URL('../../plugins-sdk/index.ts', import.meta.url).href;
const owner = `import { configKey, definePlugin, Type } from '${SDK}';
const keys = [configKey('root', 'markup', Type.Optional(Type.Number())), configKey('server', 'markup', Type.Optional(Type.Number()))];
export default definePlugin({ name: 'owner', keys, setup: () => ({}) });`;
const calm = `import { configKey, definePlugin, Type } from '${SDK}';
const keys = [configKey('server', 'calm', Type.Optional(Type.Number()))];
export default definePlugin({ name: 'calm', keys, changesAnswers: false, setup: () => ({}) });`;
const plugin = (name: string) => ({ settings: { plugins: [{ source: `./${name}.mjs` }] } });

type Config = Parameters<typeof startTestService>[0];

const { upstream, held, arrived, release } = await reloadable();

beforeEach(() => {
  let price = 0;
  upstream.on('/price', (_req, res) => {
    res.setHeader('content-type', 'application/json').end(`{"price": ${++price}}`);
  });
});

const files = { 'one.mjs': quiet('one'), 'two.mjs': quiet('two'), 'owner.mjs': owner, 'calm.mjs': calm };

const start = (t: TestContext, config: Config, env: Record<string, string> = {}) =>
  serviceFor(t, config, { env, files });
const dataOf = async (response: Response) => BigInt((await verifyEncoded(response, TEST_ADDRESS)).data);

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

describe('unchanged caches live on', () => {
  const config = (maxAge: number, { api = {}, ...more }: { api?: Block } & Block = {}) => {
    const other = { path: '/price?other', encoding, cache: { maxAge: HOUR } };
    return oneApi(upstream.url, { price: { encoding, cache: { maxAge } }, other }, { ...more, api });
  };

  it('the same answer, signature and timestamp included, for an endpoint whose config is the same', async (t) => {
    const service = await start(t, config(HOUR));
    const first = await (await service.post('api/price')).text();
    assert.equal(BigInt((await verifyEncoded(JSON.parse(first), TEST_ADDRESS)).data), 1n);
    await reload(service);
    assert.equal(await (await service.post('api/price')).text(), first);
    // The rate limit has no part in an answer, and neither has another endpoint.
    await reload(service, { ...config(HOUR), server: { rateLimit: { max: 999 } } });
    assert.equal(await (await service.post('api/price')).text(), first);
    const other = await (await service.post('api/other')).text();
    assert.equal(BigInt(JSON.parse(other).data), 2n);
    await reload(service, config(HOUR - 1));
    assert.equal(await (await service.post('api/other')).text(), other, 'its own config is the same');
    assert.equal(BigInt((await verifyEncoded(await service.post('api/price'), TEST_ADDRESS)).data), 3n);
  });

  const owned = (more: Block) => config(HOUR, { ...plugin('owner'), ...more });
  const budget = (timeout: object) => ({ settings: { plugins: [{ source: './one.mjs', ...timeout }] } });
  const changes: [string, (changed: boolean) => Config][] = [
    ['maxAge', (changed) => config(changed ? HOUR - 1 : HOUR)],
    ['headers', (changed) => config(HOUR, { api: { headers: { 'X-Tier': changed ? 'gold' : 'basic' } } })],
    ['the timeout', (changed) => config(HOUR, { api: { timeout: changed ? 5000 : 6000 } })],
    ['plugins', (changed) => config(HOUR, plugin(changed ? 'one' : 'two'))],
    ['the budget of a plugin', (changed) => config(HOUR, budget(changed ? { timeout: 10 } : {}))],
    ['a key of a plugin at the top', (changed) => owned({ markup: changed ? 2 : 1 })],
    ['a key of a plugin under server', (changed) => owned({ server: { markup: changed ? 2 : 1 } })],
    ['a key of a plugin that was not set', (changed) => owned(changed ? { markup: 1 } : {})],
  ];
  for (const [what, configure] of changes) {
    it(`no longer where other: ${what}`, async (t) => {
      const service = await start(t, configure(false));
      const data = async () => dataOf(await service.post('api/price'));
      assert.deepEqual([await data(), await data()], [1n, 1n]);
      assert.equal((await reload(service, configure(true))).done, true);
      assert.deepEqual([await data(), await data()], [2n, 2n]);
    });
  }

  it('where just the rate limit or CORS are other, beside the keys of plugins', async (t) => {
    const cors = { origins: ['https://a.example.com'] };
    const service = await start(t, owned({ markup: 1, server: { markup: 2, rateLimit: { max: 1000 } } }));
    const first = await (await service.post('api/price')).text();
    for (const server of [
      { markup: 2, rateLimit: { max: 999 } },
      { markup: 2, rateLimit: { max: 999 }, cors },
      { rateLimit: { max: 1000 }, host: '127.0.0.1', markup: 2 },
    ]) {
      assert.equal((await reload(service, owned({ markup: 1, server }))).done, true);
      assert.equal(await (await service.post('api/price')).text(), first);
    }
  });

  it('where only a plugin says another thing that changes no answer', async (t) => {
    const calmly = (value: number) => config(HOUR, { ...plugin('calm'), server: { calm: value } });
    const service = await start(t, calmly(1));
    const first = await (await service.post('api/price')).text();
    assert.equal((await reload(service, calmly(2))).done, true);
    assert.equal(await (await service.post('api/price')).text(), first);
  });

  it('no longer where the value of a variable is another', async (t) => {
    const keyed = config(HOUR, { api: { headers: { 'X-Key': `\${UPSTREAM_KEY}` } } });
    const service = await start(t, keyed, { UPSTREAM_KEY: 'old' });
    const data = async () => dataOf(await service.post('api/price'));
    assert.equal(await data(), 1n);
    await reload(service, undefined, { UPSTREAM_KEY: 'old' });
    assert.equal(await data(), 1n);
    await reload(service, undefined, { UPSTREAM_KEY: 'new' });
    assert.equal(await data(), 2n);
    assert.equal(upstream.requests.at(-1)?.headers['x-key'], 'new');
  });

  it('what a request under way stores is for the config that it began with', async (t) => {
    const held = (tier: string) => {
      const api = { headers: { 'X-Tier': tier }, timeout: 30_000 };
      return oneApi(upstream.url, { held: { encoding, cache: { maxAge: HOUR } } }, { api });
    };
    const service = await start(t, held('basic'));
    const old = service.post('api/held');
    await arrived(1);
    await reload(service, held('gold'));
    release();
    assert.equal((await old).status, 200);
    const later = service.post('api/held');
    await arrived(1);
    assert.equal(upstream.requests.at(-1)?.headers['x-tier'], 'gold');
    release();
    assert.equal((await later).status, 200);
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
