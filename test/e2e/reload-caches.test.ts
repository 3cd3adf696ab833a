/** Cached answers live on over a reload, where the config of their endpoint is the same. */

import assert from 'node:assert/strict';
import { beforeEach, describe, it, type TestContext } from 'node:test';
import { plugin, quiet, reload, reloadable } from '../support/reload.ts';
import { type Block, encoding, oneApi, serviceFor, type startTestService, TEST_ADDRESS } from '../support/service.ts';
import { verifyEncoded } from '../support/verify.ts';

const HOUR = 3_600_000;
const SDK = new URL('../../plugins-sdk/index.ts', import.meta.url).href;
/** A plugin that owns keys at the top and under `server`. */
const owner = `import { configKey, definePlugin, Type } from '${SDK}';
const keys = [configKey('root', 'markup', Type.Optional(Type.Number())), configKey('server', 'markup', Type.Optional(Type.Number()))];
export default definePlugin({ name: 'owner', keys, setup: () => ({}) });`;
/** A plugin that owns a key, which changes no answer. */
const calm = `import { configKey, definePlugin, Type } from '${SDK}';
const keys = [configKey('server', 'calm', Type.Optional(Type.Number()))];
export default definePlugin({ name: 'calm', keys, changesAnswers: false, setup: () => ({}) });`;

type Config = Parameters<typeof startTestService>[0];

const { upstream, arrived, release } = await reloadable();

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
    assert.equal(await dataOf(await service.post('api/price')), 3n);
  });

  it('no longer where one thing is another', async (t) => {
    let given = { maxAge: HOUR, tier: 'basic', timeout: 6000, name: 'two', budget: {}, top: {}, markup: 1 };
    const configure = () => {
      const { maxAge, tier, timeout, name, budget, top, markup } = given;
      const plugins = [{ source: './owner.mjs' }, { source: `./${name}.mjs`, ...budget }];
      const api = { headers: { 'X-Tier': tier }, timeout };
      return config(maxAge, { ...top, server: { markup }, settings: { plugins }, api });
    };
    const changes: Record<string, Partial<typeof given>> = {
      maxAge: { maxAge: HOUR - 1 },
      headers: { tier: 'gold' },
      'the timeout': { timeout: 5000 },
      plugins: { name: 'one' },
      'the budget of a plugin': { budget: { timeout: 10 } },
      'a key of a plugin that was not set': { top: { markup: 1 } },
      'a key of a plugin at the top': { top: { markup: 2 } },
      'a key of a plugin under server': { markup: 2 },
    };
    const service = await start(t, configure());
    const data = async () => dataOf(await service.post('api/price'));
    let price = 1n;
    assert.deepEqual([await data(), await data()], [price, price]);
    for (const [what, change] of Object.entries(changes)) {
      given = { ...given, ...change };
      assert.equal((await reload(service, configure())).done, true, what);
      price += 1n;
      assert.deepEqual([await data(), await data()], [price, price], what);
    }
  });

  const owned = (more: Block) => config(HOUR, { ...plugin('owner'), ...more });
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
