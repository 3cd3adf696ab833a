import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { testPlugin } from '../../service/testing.ts';
import { readPage, textsOf } from '../support/docs.ts';
import { assertRefused, endpointUrl, JSON_HEADERS } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { pluginFiles, pluginTools } from '../support/plugin-files.ts';
import { serviceFor, startTestService, TEST_ADDRESS } from '../support/service.ts';
import { verifyEncoded } from '../support/verify.ts';
import { askedFor, exactTerms, paidBy, payingFetch, payloadFor } from '../support/x402-exact.ts';
import { costsTo, shopWithPayer } from '../support/x402-shop.ts';

/** Says what it is told to. */
const PRICER = `import { Refusal } from 'signed-data-proxy/plugins-sdk';
${pluginTools}
export default { name: 'pricer', budget: 200, setup: () => ({ hooks: { price: {
  told: async ({ as, n = '1' }, exchange) => {
    if (as === 'throws') throw new Error('no way');
    if (as === 'rejects') throw new Refusal(400, 'Nothing is sold on Sundays');
    if (as === 'late') await sleep(10_000);
    if (as === 'loops') block(300);
    if (as === 'nothing') return undefined;
    if (as === 'number') return 5;
    if (as === 'text') return '5';
    return BigInt(n);
  },
  filled: ({ rows, tier, realm }) => BigInt(rows) + ((tier ?? realm) === undefined ? 1000n : 0n),
} } }) };`;
const CHANGES = `export default { name: 'changes', setup: () => ({ hooks: {
  validate: (given) => (given.to ? { ...given, n: given.to } : undefined),
} }) };`;

describe('x402-exact: prices by a plugin', async () => {
  const { shop, alice } = await shopWithPayer(suite);
  const auth = exactTerms(shop.market, shop.facilitator.url, { amount: { by: 'told', max: '5000' } });
  const made = pluginFiles({ pricer: PRICER, changes: CHANGES });
  const plugins = [...made.plugins, { source: './by-volume.ts' }];
  const shown = textsOf(await readPage('docs/payments.md'), 'ts').find((text) => text.includes('by-volume'));
  const files = { ...made.files, 'by-volume.ts': shown ?? '' };
  const byVolume = exactTerms(shop.market, shop.facilitator.url, { amount: { by: 'volume', max: '50000' } });
  const byFilled = exactTerms(shop.market, shop.facilitator.url, { amount: { by: 'filled', max: '50000' } });
  const filled = [
    { name: 'rows', default: 100 },
    { name: 'tier', fixed: 'pro' },
    { name: 'realm', default: 'main', secret: true },
  ];
  const endpoints = {
    e: { auth, parameters: [{ name: 'n' }, { name: 'as' }] },
    shown: { auth: byVolume },
    filled: { auth: byFilled, parameters: filled },
  };
  const service = await serviceFor(suite, shop.config(endpoints, { settings: { plugins, openapi: true } }), { files });

  const costs = costsTo(shop.market, alice);

  it('a wallet pays what the plugin says of its request', async () => {
    for (const n of ['1', '4321', '5000'])
      await costs(BigInt(n), async () => {
        const pay = payingFetch(alice, shop.market, 5000n);
        const body = JSON.stringify({ parameters: { n } });
        const response = await pay(endpointUrl(service, 'a/e'), { method: 'POST', headers: JSON_HEADERS, body });
        await verifyEncoded(response, TEST_ADDRESS);
      });
  });

  it('a payment for another price is refused with the terms', async () => {
    const paid = await payloadFor(service, 'a/e', alice, { n: '10' });
    await costs(0n, async () => {
      const { error, accepts } = await askedFor(await service.post('a/e', { n: '11' }, paidBy(paid)));
      assert.deepEqual([error, accepts[0].amount], ['invalid_payment_requirements', '11']);
      const changed = await service.post('a/e', { n: '10', to: '5000' }, paidBy(paid));
      await assertRefused(changed, 500, 'Internal server error');
    });
  });

  it('the plugin of the documentation', async () => {
    const { accepts } = await askedFor(await service.post('a/shown', { rows: 99 }));
    assert.equal(accepts[0].amount, '1010');
    await assertRefused(await service.post('a/shown', { rows: '' }), 400, 'Invalid parameter: rows');
  });

  it('a plugin is told the values that the upstream is asked with', async () => {
    const asked = [];
    for (const given of [{}, { rows: null }, { rows: 5, tier: 'basic', realm: 'x' }]) {
      const { accepts } = await askedFor(await service.post('a/filled', given));
      asked.push(accepts[0].amount);
    }
    assert.deepEqual(asked, ['1100', '1100', '1005']);
  });

  it('zero lets a request in', async () => {
    await costs(0n, async () => assert.equal((await service.post('a/e', { n: '0' })).status, 200));
  });

  it('what is no price, or is too late, names the plugin, and nobody gets an answer', async () => {
    const SPENT = /^its 200 ms were spent in the call$/;
    const NO_BIGINT = /it must be a bigint, 0n or more$/m;
    const reasons = {
      throws: /^plugin "pricer": Error: no way/,
      ...{ late: SPENT, loops: SPENT, number: NO_BIGINT, text: NO_BIGINT },
      nothing: /^plugin "pricer": it returned no price$/,
    };
    for (const [as, reason] of Object.entries(reasons)) {
      const response = await service.post('a/e', { as });
      await assertRefused(response, 503, 'Plugin "pricer" gave no price');
      const id = response.headers.get('x-request-id');
      const line = service.logs.find(({ fields }) => fields.requestId === id && fields.detail !== undefined);
      assert.match(String(line?.fields.detail), reason, as);
    }
    for (const n of ['-1', '5001', '9'.repeat(90)])
      await assertRefused(await service.post('a/e', { n }), 503, 'Plugin "pricer" gave no price');
  });

  it('a plugin may refuse a request in its own words', async () => {
    await assertRefused(await service.post('a/e', { as: 'rejects' }), 400, 'Nothing is sold on Sundays');
  });

  it('catalogues are told that the price depends on the request', async () => {
    const document = JSON.parse(await (await fetch(`${service.url}/openapi.json`)).text());
    const { responses, 'x-payment-info': info } = document.paths[`/endpoints/${service.ids['a/e']}`].post;
    assert.deepEqual(info.price, { mode: 'dynamic' });
    const errors = Object.values<{ value: { error: string } }>(responses[503].content['application/json'].examples);
    assert.ok(errors.some(({ value }) => value.error === 'Plugin "<name>" gave no price'));
  });

  it('a price that no plugin has stops the start', async () => {
    const auth = exactTerms(shop.market, shop.facilitator.url, { amount: { by: 'tolt', max: '5000' } });
    const { files, plugins } = pluginFiles({ pricer: PRICER });
    const message =
      'plugin "auth-x402-exact" cannot start: no plugin has the price "tolt" of auth.accepts[].amount.by, did you mean "told"?';
    const config = shop.config({ e: { auth } }, { settings: { plugins } });
    await assert.rejects(startTestService(config, { files }), { message });
  });

  it('a test of the plugin asks for its prices', async (t) => {
    const half = ({ n }: Readonly<Record<string, unknown>>) => BigInt(Number(n) / 2);
    const harness = await testPlugin({ name: 'half', setup: () => ({ hooks: { price: { half } } }) }, { t });
    assert.deepEqual(await harness.run('price', { variant: 'half', parameters: { n: 8 } }), { value: 4n });
    const odd = await harness.run('price', { variant: 'half', parameters: { n: 7 } });
    assert.equal((odd as { refused: { status: number } }).refused.status, 500);
  });
});
