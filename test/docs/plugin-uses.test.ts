/** The uses of inner stages that docs/plugins.md shows work. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, describe, it, type TestContext } from 'node:test';
import { filesOf, readPage } from '../support/docs.ts';
import { inTurn } from '../support/in-turn.ts';
import { suite } from '../support/lifetime.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const files = filesOf(await readPage('docs/plugins.md'));

describe('docs/plugins.md, uses of the inner stages', async () => {
  const SECRET = 'a secret of two parties';
  const [a, b, login] = [await upstreamFor(suite), await upstreamFor(suite), await upstreamFor(suite)];
  process.env.UPSTREAM_SECRET = SECRET;
  after(() => Reflect.deleteProperty(process.env, 'UPSTREAM_SECRET'));

  /** A service that asks `a`, with plugins of the page in this order, whose URLs are those of the upstreams here. */
  async function ask(t: TestContext, ...names: string[]) {
    const local = (text: string) =>
      Object.entries({ a, b, login }).reduce(
        (changed, [name, { url }]) =>
          changed.replaceAll(`https://${name}.example.com`, url).replaceAll(`${name}.example.com`, new URL(url).host),
        text,
      );
    const plugins = names.map((name) => ({ source: `./${name}.ts` }));
    const service = await serviceFor(t, oneApi(a.url, { price: {} }, { settings: { plugins } }), {
      files: Object.fromEntries(
        names.map((name) => [`${name}.ts`, local(files.get(`${name}.ts`) ?? assert.fail(`there is no ${name}`))]),
      ),
    });
    return async () => {
      const response = await service.post('api/price');
      assert.equal(response.status, 200);
      return response.text();
    };
  }
  const dataOf = (text: string) => JSON.parse(text).rawData;

  it('again, elsewhere, signed, with a token, and the last good answer', async (t) => {
    const get = await ask(t, 'last-good', 'again', 'elsewhere', 'signed-calls', 'bearer');
    login.json('/token', { access_token: 't1' });
    a.on('/price', faults.empty(503));
    b.on('/price', inTurn(faults.empty(503), faults.json(7), faults.empty(503)));
    const good = await get();
    assert.equal(dataOf(good), 7);
    const { headers } = b.requests.at(-1) ?? assert.fail('nobody was asked');
    const signature = createHmac('sha256', SECRET).update(`GET ${b.url}/price `).digest('hex');
    assert.deepEqual([headers['x-signature'], headers.authorization], [signature, 'Bearer t1']);
    assert.equal(await get(), good);
    assert.deepEqual(
      [a, b, login].map(({ requests }) => requests.length),
      [4, 4, 1],
    );
  });

  it('the mean of two, remembered', async (t) => {
    const get = await ask(t, 'remembered', 'mean');
    a.json('/price', { price: 1 });
    b.json('/v2', { price: 2 });
    const asked = b.requests.length;
    const [one, other] = await Promise.all([get(), get()]);
    assert.deepEqual([dataOf(one), other, await get()], [{ price: 1.5 }, one, one]);
    assert.equal(b.requests.length - asked, 1);
  });
});
