import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { finished, submitted } from '../support/async.ts';
import { assertRefused, endpointUrl, JSON_HEADERS } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { callOf, postMcp } from '../support/mcp.ts';
import { serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { verifyEncoded } from '../support/verify.ts';
import { askedFor, exactTerms, paidBy, payingFetch, payloadFor, settledAs } from '../support/x402-exact.ts';
import { shopFor } from '../support/x402-shop.ts';

/** Has upper-case tiers asked for as lower-case ones, once who is asking is known. */
const CHANGES = `export default { name: 'changes', setup: () => ({ hooks: {
  validate: (given) => ({ ...given, ...(given.tier && { tier: String(given.to ?? given.tier) }) }),
} }) };`;

const PARAMETERS = [
  { name: 'symbols', default: 'ETH' },
  { name: 'days', default: 0, schema: { type: 'integer', minimum: 0, maximum: 100 } },
  { name: 'tier', default: 'basic' },
];
const AMOUNT = {
  base: '1000',
  per: { symbols: { each: '500' }, days: '20', tier: { values: { basic: '0', pro: '3000' } } },
  max: '6000',
};

describe('x402-exact: prices by parameter', async () => {
  const shop = await shopFor(suite);
  const alice = await shop.market.wallet(1_000_000n);
  const priced = (amount: unknown) => exactTerms(shop.market, shop.facilitator.url, { amount });
  const auth = priced(AMOUNT);
  const sold = { auth, parameters: PARAMETERS };
  const tiers = { base: '0', per: { tier: { values: { basic: '0', pro: '3000' } } }, max: '3000' };
  const endpoints = {
    sync: sold,
    async: { ...sold, mode: 'async' },
    stream: { ...sold, mode: 'stream' },
    cached: { ...sold, cache: { maxAge: 600_000 } },
    keyed: { ...sold, auth: [{ type: 'apiKey', keys: ['0123456789abcdef'] }, auth] },
    listed: {
      ...{ method: 'POST', parameters: [{ name: 'symbols', in: 'body', required: true }] },
      auth: priced({ base: '0', per: { symbols: { each: '500' } }, max: '1000' }),
    },
    tiers: { auth: priced(tiers), parameters: [{ name: 'tier', required: true }] },
  };
  const plugins = [{ source: './changes.mjs' }];
  const config = shop.config(endpoints, { settings: { mcp: true, plugins } });
  const service = await serviceFor(suite, config, { files: { 'changes.mjs': CHANGES } });

  const asks = async (endpoint: string, parameters?: object) =>
    (await askedFor(await service.post(endpoint, parameters))).accepts[0]?.amount;
  const fetchPaying = (endpoint: string, parameters: object) =>
    payingFetch(
      alice,
      shop.market,
      6000n,
    )(endpointUrl(service, endpoint), {
      method: 'POST',
      headers: JSON_HEADERS,
      body: JSON.stringify({ parameters }),
    });
  /** Asserts that just so much was paid meanwhile. */
  const costs = async (amount: bigint, work: () => Promise<unknown>) => {
    const before = await shop.market.balance(alice.address);
    await work();
    assert.equal(before - (await shop.market.balance(alice.address)), amount);
  };

  it('the terms are those of the very request', async () => {
    const prices: [object | undefined, string][] = [
      [undefined, '1500'],
      [{ symbols: null, days: null }, '1500'],
      [{ symbols: 'ETH,BTC,SOL' }, '2500'],
      [{ symbols: '' }, '1500'],
      [{ symbols: 7 }, '1500'],
      [{ symbols: 'A,B,' }, '2500'],
      [{ days: 3 }, '1560'],
      [{ days: 0, tier: 'pro' }, '4500'],
      [{ symbols: 'A,B', days: 25, tier: 'pro' }, '5500'],
      [{ symbols: 'A,B,C', days: 25, tier: 'pro' }, '6000'],
      [{ more: 'A,B,C,D' }, '1500'],
    ];
    for (const [parameters, price] of prices)
      assert.equal(await asks('a/sync', parameters), price, JSON.stringify(parameters));
  });

  it('an empty list is an item, as an empty text is: upstreams may take it for all of them', async () => {
    for (const [symbols, price] of [
      [[], '500'],
      ['', '500'],
      [['A', ''], '1000'],
    ])
      assert.equal(await asks('a/listed', { symbols }), price);
  });

  it('what has no price is refused before anybody pays, as the parameters would be', async () => {
    const refusals: [object, string][] = [
      [{ days: -1 }, 'Invalid parameter: days (must be >= 0)'],
      [{ days: 1.5 }, 'Invalid parameter: days (must be integer)'],
      [{ days: 'x' }, 'Invalid parameter: days (must be integer)'],
      [{ days: 101 }, 'Invalid parameter: days (must be <= 100)'],
      [{ tier: 'Pro' }, 'Invalid parameter: tier (must be one of "basic","pro")'],
      [{ tier: ['pro'] }, 'Invalid parameter: tier (must be one of "basic","pro")'],
      [{ tier: 'constructor' }, 'Invalid parameter: tier (must be one of "basic","pro")'],
      [{ symbols: {} }, 'Invalid parameter: symbols (must be a list, or a text with commas)'],
      [{ symbols: 'A,B,C,D', days: 25, tier: 'pro' }, 'The request would cost more than is allowed: ask for less'],
      [{ symbols: ','.repeat(60_000) }, 'The request would cost more than is allowed: ask for less'],
    ];
    for (const [parameters, error] of refusals)
      await assertRefused(await service.post('a/sync', parameters), 400, error);
  });

  it('a wallet pays what its request costs, in every mode', async () => {
    await costs(2500n, async () => {
      const response = await fetchPaying('a/sync', { symbols: 'A,B,C' });
      await verifyEncoded(response, TEST_ADDRESS);
      assert.equal(settledAs(response).amount, '2500');
    });
    await costs(4500n, async () => {
      const record = await finished(service, await submitted(await fetchPaying('a/async', { tier: 'pro' })));
      assert.equal(record.status, 'complete');
    });
    await costs(1540n, async () => assert.equal((await fetchPaying('a/stream', { days: 2 })).status, 200));
    for (const [symbols, price] of [
      ['A', 1500n],
      ['A,B', 2000n],
      ['A,B', 2000n],
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
    assert.equal((await pay(dear)).structuredContent.accepts[0].amount, '4500');
    const cheap = await payloadFor(service, 'a/sync', alice);
    await costs(0n, async () => {
      const { isError, structuredContent } = await pay(dear, cheap);
      assert.deepEqual([isError, structuredContent.error], [true, 'invalid_payment_requirements']);
    });
    await costs(4500n, async () => {
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
        const price = symbols === 'A' ? '1500' : '2500';
        assert.deepEqual([refused.status, error, accepts[0].amount], [402, 'invalid_payment_requirements', price]);
      }
      const forged = { ...paid, accepted: { ...paid.accepted, amount: '2500' } };
      const refused = await service.post('a/sync', { symbols: 'A,B,C' }, paidBy(forged));
      assert.equal((await askedFor(refused)).error, 'invalid_exact_evm_payload_authorization_value');
    });
  });

  it('who is let in by a key is asked for no price', async () => {
    const answer = (parameters: object) => service.post('a/keyed', parameters, { 'X-Api-Key': '0123456789abcdef' });
    assert.equal((await answer({ tier: 'none', symbols: 'A,'.repeat(99) })).status, 200);
    assert.equal(await asks('a/keyed', { tier: 'pro' }), '4500');
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

  it('a plugin that changes what is asked afterwards gets nobody a dear answer for a low price', async () => {
    await costs(0n, async () => {
      await assertRefused(await service.post('a/tiers', { tier: 'basic', to: 'pro' }), 500, 'Internal server error');
      const paid = await payloadFor(service, 'a/sync', alice);
      const asked = await service.post('a/sync', { tier: 'basic', to: 'pro' }, paidBy(paid));
      await assertRefused(asked, 500, 'Internal server error');
    });
  });
});
