/** tariff prices requests by a table of their parameters. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { finished, submitted } from '../../support/async.ts';
import { example } from '../../support/examples.ts';
import { assertRefused, endpointUrl, JSON_HEADERS } from '../../support/http.ts';
import { suite } from '../../support/lifetime.ts';
import { callOf, postMcp } from '../../support/mcp.ts';
import { serviceFor, TEST_ADDRESS } from '../../support/service.ts';
import { verifyEncoded } from '../../support/verify.ts';
import { askedFor, exactTerms, paidBy, payingFetch, payloadFor, settledAs } from '../../support/x402-exact.ts';
import { costsTo, shopWithPayer } from '../../support/x402-shop.ts';

const PARAMETERS = [
  { name: 'symbols', default: 'ETH' },
  { name: 'days', default: 0, schema: { type: 'integer', minimum: 0, maximum: 100 } },
  { name: 'tier', default: 'basic' },
];
const TABLE = {
  base: '0',
  each: { symbols: '500' },
  times: { days: '20' },
  values: { tier: { basic: '0', pro: '3000' } },
};

describe('tariff', async () => {
  const { shop, alice } = await shopWithPayer(suite);
  const auth = exactTerms(shop.market, shop.facilitator.url, { amount: { by: 'tariff', max: '5000' } });
  const sold = { auth, parameters: PARAMETERS };
  const endpoints = {
    sync: sold,
    async: { ...sold, mode: 'async' },
    stream: { ...sold, mode: 'stream' },
    cached: { ...sold, cache: { maxAge: 600_000 } },
    keyed: { ...sold, auth: [{ type: 'apiKey', keys: ['0123456789abcdef'] }, auth] },
    listed: { auth, method: 'POST', parameters: [{ name: 'symbols', in: 'body', required: true }] },
    tiers: { auth, parameters: [{ name: 'tier', required: true }] },
  };
  const config = shop.config(endpoints, { settings: { mcp: true, plugins: [example('tariff', TABLE)] } });
  const service = await serviceFor(suite, config);

  const asks = async (endpoint: string, parameters?: object) =>
    (await askedFor(await service.post(endpoint, parameters))).accepts[0]?.amount;
  const fetchPaying = (endpoint: string, parameters: object) =>
    payingFetch(
      alice,
      shop.market,
      5000n,
    )(endpointUrl(service, endpoint), {
      method: 'POST',
      headers: JSON_HEADERS,
      body: JSON.stringify({ parameters }),
    });
  /** Asserts that just so much was paid meanwhile. */
  const costs = costsTo(shop.market, alice);

  it('the terms are those of the very request', async () => {
    const prices: [object | undefined, string][] = [
      [undefined, '500'],
      [{ symbols: null, days: null }, '500'],
      [{ symbols: 'ETH,BTC,SOL' }, '1500'],
      [{ symbols: '' }, '500'],
      [{ symbols: 7 }, '500'],
      [{ symbols: 'A,B,' }, '1500'],
      [{ days: 3 }, '560'],
      [{ days: 0, tier: 'pro' }, '3500'],
      [{ symbols: 'A,B', days: 25, tier: 'pro' }, '4500'],
      [{ symbols: 'A,B,C', days: 25, tier: 'pro' }, '5000'],
      [{ more: 'A,B,C,D' }, '500'],
    ];
    for (const [parameters, price] of prices)
      assert.equal(await asks('a/sync', parameters), price, JSON.stringify(parameters));
  });

  it('an empty list is an item, as an empty text is: upstreams may take it for all of them', async () => {
    for (const [symbols, price] of [
      [[], '500'],
      ['', '500'],
      [['A', ''], '1000'],
      [[['A', 'B', 'C'], 'D'], '2000'],
      [['A,B', 'C'], '1500'],
    ])
      assert.equal(await asks('a/listed', { symbols }), price);
  });

  it('what has no price is refused before anybody pays', async () => {
    for (const [name, value] of [
      ['days', -1],
      ['days', 1.5],
      ['days', 'x'],
      ['tier', 'Pro'],
      ['tier', 'constructor'],
    ] as const)
      await assertRefused(await service.post('a/sync', { [name]: value }), 400, `Invalid parameter: ${name}`);
    const dear = await service.post('a/sync', { symbols: 'A,B,C,D', days: 26, tier: 'pro' });
    await assertRefused(dear, 503, 'Plugin "tariff" gave no price');
  });

  it('a wallet pays what its request costs, in every mode', async () => {
    await costs(1500n, async () => {
      const response = await fetchPaying('a/sync', { symbols: 'A,B,C' });
      await verifyEncoded(response, TEST_ADDRESS);
      assert.equal(settledAs(response).amount, '1500');
    });
    await costs(3500n, async () => {
      const record = await finished(service, await submitted(await fetchPaying('a/async', { tier: 'pro' })));
      assert.equal(record.status, 'complete');
    });
    await costs(540n, async () => assert.equal((await fetchPaying('a/stream', { days: 2 })).status, 200));
    for (const [symbols, price] of [
      ['A', 500n],
      ['A,B', 1000n],
      ['A,B', 1000n],
    ] as const)
      await costs(price, async () => assert.equal((await fetchPaying('a/cached', { symbols })).status, 200));
  });

  it('a tool of agents is paid by what its arguments cost', async () => {
    const pay = async (given: object, payment?: unknown) => {
      const call = callOf('a_sync', given);
      const _meta = { 'x402/payment': payment };
      return (await postMcp(service, payment ? { ...call, params: { ...call.params, _meta } } : call)).said.result;
    };
    const dear = { tier: 'pro' };
    assert.equal((await pay(dear)).structuredContent.accepts[0].amount, '3500');
    const cheap = await payloadFor(service, 'a/sync', alice);
    await costs(0n, async () => {
      const { isError, structuredContent } = await pay(dear, cheap);
      assert.deepEqual([isError, structuredContent.error], [true, 'invalid_payment_requirements']);
    });
    await costs(3500n, async () => {
      const { structuredContent } = await pay(dear, await payloadFor(service, 'a/sync', alice, dear));
      await verifyEncoded(structuredContent, TEST_ADDRESS);
    });
  });

  it('what pays for a cheap request buys no dear one, and no cheaper one either', async () => {
    await costs(0n, async () => {
      const paid = await payloadFor(service, 'a/sync', alice, { symbols: 'A,B' });
      for (const symbols of ['A,B,C', 'A']) {
        const refused = await service.post('a/sync', { symbols }, paidBy(paid));
        const { error, accepts } = await askedFor(refused);
        const price = symbols === 'A' ? '500' : '1500';
        assert.deepEqual([refused.status, error, accepts[0].amount], [402, 'invalid_payment_requirements', price]);
      }
      const forged = { ...paid, accepted: { ...paid.accepted, amount: '1500' } };
      const refused = await service.post('a/sync', { symbols: 'A,B,C' }, paidBy(forged));
      assert.equal((await askedFor(refused)).error, 'invalid_exact_evm_payload_authorization_value');
    });
  });

  it('who is let in by a key is asked for no price', async () => {
    const answer = (parameters: object) => service.post('a/keyed', parameters, { 'X-Api-Key': '0123456789abcdef' });
    assert.equal((await answer({ tier: 'none', symbols: 'A,'.repeat(99) })).status, 200);
    assert.equal(await asks('a/keyed', { tier: 'pro' }), '3500');
  });

  it('what costs nothing needs no payment, and takes none', async () => {
    await costs(0n, async () => {
      assert.equal((await service.post('a/tiers', { tier: 'basic' })).status, 200);
      const paid = await payloadFor(service, 'a/tiers', alice, { tier: 'pro' });
      assert.equal((await service.post('a/tiers', { tier: 'basic' }, paidBy(paid))).status, 200);
      await assertRefused(await service.post('a/tiers', {}), 400, 'Missing required parameter(s): tier');
    });
    await costs(3000n, async () => assert.equal((await fetchPaying('a/tiers', { tier: 'pro' })).status, 200));
  });
});
