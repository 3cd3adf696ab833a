import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { describeService } from '../../builtins/openapi/document.ts';
import { assertValid, Described } from '../openapi/document.ts';
import { loadObject } from '../support/config.ts';
import { assertRefused, JSON_HEADERS } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { scrapeAfter } from '../support/metrics.ts';
import { serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { payer, proofHeader, termsOn } from '../support/x402.ts';
import { askedFor, exactTerms, PRICE, paidBy, payloadFor, settledAs } from '../support/x402-exact.ts';
import { shopWithPayer } from '../support/x402-shop.ts';

const KEY = '0123456789abcdef';
const apiKey = { type: 'apiKey', keys: [KEY] };

describe('x402-exact beside other features', async () => {
  const { shop, alice } = await shopWithPayer(suite);
  const nowhere = exactTerms(shop.market, 'http://127.0.0.1:9', { amount: '1' });
  const endpoints = {
    paid: {},
    either: { auth: [apiKey, shop.auth] },
    'two facilitators': { auth: [shop.auth, nowhere] },
    'two facilitators, the other way': { auth: [nowhere, shop.auth] },
    free: { auth: { type: 'free' } },
    'on chain': { auth: { ...termsOn(shop.chain, PRICE), token: shop.market.asset } },
  };
  const plugins = [{ source: './asking.mjs' }];
  const asking = `export default { name: 'asking', setup: ({ endpoints, ask }) => ({ routes: [{
      method: 'GET', path: '/asked', admit: true,
      handle: async (_, exchange) => ask(endpoints[0].id, {}, { as: exchange }),
    }] }) };`;
  const settings = { plugins, metrics: { port: 0 } };
  const service = await serviceFor(suite, shop.config(endpoints, { settings }), { files: { 'asking.mjs': asking } });

  const errorOf = async (response: Response) => ((await response.json()) as { error: string }).error;
  const bought = async (response: Response) => {
    await verifyEncoded(response, TEST_ADDRESS);
    assert.equal(settledAs(response).success, true);
  };

  it('a key opens for nothing, a payment opens without a key', async () => {
    const had = await shop.market.balance(alice.address);
    const opened = await service.post('a/either', {}, { 'X-Api-Key': KEY });
    assert.equal(opened.headers.get('payment-response'), null);
    await verifyEncoded(opened, TEST_ADDRESS);
    assert.equal((await service.post('a/either', {}, { 'X-Api-Key': 'wrong' })).status, 402);
    const payload = await payloadFor(service, 'a/either', alice);
    await verifyEncoded(await service.post('a/either', {}, { 'X-Api-Key': KEY, ...paidBy(payload) }), TEST_ADDRESS);
    assert.equal(await shop.market.balance(alice.address), had);
    await bought(await service.post('a/either', {}, paidBy(payload)));
    assert.equal(await shop.market.balance(alice.address), had - PRICE);
  });

  it('the offers of several methods are one list, and what was wrong with a payment is said whichever it was for', async () => {
    for (const endpoint of ['a/two facilitators', 'a/two facilitators, the other way']) {
      const { accepts } = await askedFor(await service.post(endpoint));
      const amounts = accepts.map(({ amount }: { amount: string }) => amount);
      assert.deepEqual(amounts.toSorted(), ['1', String(PRICE)]);
      const payload = await payloadFor(service, 'a/paid', alice);
      await bought(await service.post(endpoint, {}, paidBy(payload)));
      const again = await service.post(endpoint, {}, paidBy(payload));
      assert.equal(await errorOf(again), 'invalid_exact_evm_nonce_already_used');
    }
  });

  it('the transaction that settled it pays for nothing on chain, for the same recipient, by whomever it was sent', async () => {
    const sold = await service.post('a/paid', {}, paidBy(await payloadFor(service, 'a/paid', alice)));
    // The facilitator's account, as it could be a stranger's who has seen the authorisation.
    const proof = await proofHeader(payer(shop.chain, 6), service, 'a/on chain', settledAs(sold).transaction);
    await assertRefused(await service.post('a/on chain', {}, proof), 401, 'Payment does not match');
  });

  it('a plugin that asks an endpoint has its client pay', async () => {
    const challenge = await fetch(`${service.url}/asked`);
    assert.equal(challenge.status, 402);
    assert.equal((await askedFor(challenge)).x402Version, 2);
    const headers = paidBy(await payloadFor(service, 'a/paid', alice));
    await bought(await fetch(`${service.url}/asked`, { headers }));
  });

  it('browsers may send and read its headers', async () => {
    const preflight = await fetch(service.url, { method: 'OPTIONS' });
    const allowed = preflight.headers.get('access-control-allow-headers')?.split(', ');
    assert.deepEqual(allowed?.slice(-2), ['PAYMENT-SIGNATURE', 'Access-Control-Expose-Headers']);
    const { headers } = await service.post('a/paid');
    const exposed =
      'Cache-Status, PAYMENT-REQUIRED, PAYMENT-RESPONSE, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id';
    assert.equal(headers.get('access-control-expose-headers'), exposed);
  });

  it('its OpenAPI is valid and says what clients send and get', async (t) => {
    const loaded = await loadObject(shop.config(endpoints));
    const described = new Described(describeService({ ...loaded, version: '0.0.0' }).document);
    await assertValid(described);
    const [paid] = loaded.endpoints;
    const path = `/endpoints/${paid?.id}`;
    assert.deepEqual(described.at('paths', path, 'post', 'security'), []);
    await described.assertDescribed(path, 'post', await service.post('a/paid'));
    await described.assertDescribed(path, 'post', await service.post('a/paid', {}, { 'PAYMENT-SIGNATURE': 'x' }));
    t.after(() => shop.facilitator.reset());
    shop.facilitator.on('/verify', faults.serverError());
    const headers = paidBy(await payloadFor(service, 'a/paid', alice));
    await described.assertDescribed(path, 'post', await service.post('a/paid', {}, headers));
  });

  it('every payment is counted once', async (t) => {
    const settings = { metrics: { port: 0 } };
    const server = { rateLimit: { max: 1_000_000, x402Exact: { max: 7, window: 3_600_000 } } };
    const counted = await serviceFor(t, shop.config({ paid: {}, refused: { path: '/nothing' } }, { settings, server }));
    t.after(() => shop.facilitator.reset());
    const send = async (endpoint = 'a/paid') => {
      const payload = await payloadFor(counted, endpoint, alice);
      return (await counted.post(endpoint, {}, paidBy(payload))).status;
    };
    const failed = { success: false, errorReason: 'insufficient_funds', transaction: '', network: shop.market.network };
    const { facilitator } = shop;
    const statuses = [await send(), await send('a/refused')];
    for (const [path, handler] of [
      ['/settle', faults.json(failed)],
      ['/settle', faults.serverError()],
      ['/verify', faults.json({ isValid: false })],
      ['/verify', faults.serverError()],
    ] as const) {
      facilitator.on(path, handler);
      statuses.push(await send());
    }
    statuses.push((await counted.post('a/paid', {}, { ...JSON_HEADERS, 'PAYMENT-SIGNATURE': 'x' })).status);
    statuses.push(await send());
    assert.deepEqual(statuses, [200, 502, 402, 401, 402, 401, 402, 401]);
    const scraped = await scrapeAfter(counted, 8 + 7);
    const counts = { settled: 1, released: 1, unsettled: 1, unknown: 1, refused: 2, unavailable: 1, limited: 1 };
    assert.deepEqual(scraped.table('x402_exact_payments_total'), { ...counts, repeated: 0 });
  });
});
