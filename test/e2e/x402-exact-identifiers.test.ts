import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import {
  appendPaymentIdentifierToExtensions,
  declarePaymentIdentifierExtension,
  generatePaymentId,
} from '@x402/extensions/payment-identifier';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { reload } from '../support/reload.ts';
import { serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { askedFor, exactTerms, PRICE, paidBy, payloadFor, settledAs } from '../support/x402-exact.ts';
import { costsTo, settleAndRefuse, shopWithPayer } from '../support/x402-shop.ts';

describe('x402-exact: payments with an identifier', async () => {
  const { shop, alice } = await shopWithPayer(suite);
  const parameters = [{ name: 'x' }];
  const endpoints = { e: { parameters }, other: {}, long: { path: '/long', encoding: undefined } };
  const service = await serviceFor(suite, shop.config(endpoints));

  afterEach(() => {
    shop.facilitator.reset();
    shop.upstream.json('/p', { price: 7 });
  });

  const identified = async (id: string, endpoint = 'a/e', account = alice, seller = service) => {
    const paid = await payloadFor(seller, endpoint, account);
    const extensions = appendPaymentIdentifierToExtensions({ ...paid.extensions }, id);
    return { ...paid, extensions: structuredClone(extensions) };
  };
  const send = (payload: object, parameters: object = {}, endpoint = 'a/e') =>
    service.post(endpoint, parameters, paidBy(payload));
  /** Asserts that just so much was paid meanwhile. */
  const costs = costsTo(shop.market, alice);

  it('are offered as the library declares them', async () => {
    const { extensions } = await askedFor(await service.post('a/e'));
    assert.deepEqual(extensions, { 'payment-identifier': declarePaymentIdentifierExtension() });
  });

  it('buy the same answer again, by the same authorisation and by another one, without paying twice', async () => {
    await costs(PRICE, async () => {
      const id = generatePaymentId();
      const payload = await identified(id);
      const first = await send(payload, { x: '1' });
      const text = await first.clone().text();
      await verifyEncoded(first, TEST_ADDRESS);
      const asked = shop.upstream.requests.length;
      for (const again of [payload, await identified(id)]) {
        const response = await send(again, { x: '1' });
        assert.equal(await response.text(), text);
        assert.deepEqual(settledAs(response), settledAs(first));
      }
      assert.equal(shop.upstream.requests.length, asked);
    });
  });

  it('buy nothing else: another request is 409', async () => {
    await costs(PRICE, async () => {
      const id = generatePaymentId();
      const payload = await identified(id);
      assert.equal((await send(payload, { x: '1' })).status, 200);
      const used = 'Payment identifier was used for another request';
      await assertRefused(await send(payload, { x: '2' }), 409, used);
      await assertRefused(await send(await identified(id), { x: '2' }), 409, used);
      await assertRefused(await send(await identified(id, 'a/other'), {}, 'a/other'), 409, used);
    });
  });

  it('are one payer’s: nobody else gets what he has paid', async () => {
    const id = generatePaymentId();
    assert.equal((await send(await identified(id))).status, 200);
    const bob = await shop.market.wallet(PRICE);
    const own = await identified(id, 'a/e', bob);
    const posed = structuredClone(own);
    const { authorization } = posed.payload as { authorization: { from: string } };
    authorization.from = alice.address;
    const refused = await send(posed);
    assert.equal(refused.status, 402);
    assert.match((await askedFor(refused)).error, /signature/);
    await costs(0n, async () => {
      assert.equal((await send(own)).status, 200);
      assert.equal(await shop.market.balance(bob.address), 0n);
    });
  });

  it('one that is none is 400', async () => {
    const payload = await identified(generatePaymentId());
    for (const id of ['short', 'x'.repeat(129), 'with a space in it', 7, null, { a: 1 }]) {
      const extensions = { 'payment-identifier': { info: { required: false, id } } };
      await assertRefused(await send({ ...payload, extensions }), 400, 'Invalid payment identifier');
    }
  });

  const USUAL = { maxTimeoutSeconds: 300 };
  const changes: [what: string, sold: object, offered: object, refusal: string][] = [
    ['times', { maxTimeoutSeconds: 86_400 }, USUAL, 'invalid_exact_evm_payload_authorization_valid_before'],
    ['prices', USUAL, { amount: String(PRICE + 1n) }, 'invalid_payment_requirements'],
    ['recipients', USUAL, { payTo: `0x${'12'.repeat(20)}` }, 'invalid_payment_requirements'],
  ];
  for (const [what, sold, offered, refusal] of changes)
    it(`still buy the same answer when other ${what} are offered by then`, async (t) => {
      const selling = (terms: object) =>
        shop.config(endpoints, {}, { auth: exactTerms(shop.market, shop.facilitator.url, terms) });
      const seller = await serviceFor(t, selling(sold));
      const fresh = () => identified(generatePaymentId(), 'a/e', alice, seller);
      const [bought, unpaid] = [await fresh(), await fresh()];
      const send = (payload: object) => seller.post('a/e', {}, paidBy(payload));
      const text = await (await send(bought)).text();
      assert.equal((await reload(seller, selling(offered))).done, true);
      await costs(0n, async () => {
        assert.equal(await (await send(bought)).text(), text);
        const { extensions } = bought;
        for (const payload of [unpaid, { ...unpaid, extensions }])
          assert.equal((await askedFor(await send(payload))).error, refusal);
      });
    });

  it('buy the same answer again from a plugin that kept it, with its settlement, and no other answer', async (t) => {
    const source = `let kept; export default { name: 'keeping', setup: () => ({ hooks: {
      answer: async (question, { headers }, { next }) => headers['x-kept'] ? kept : (kept = await next(question)) } }) };`;
    const { files, plugins } = pluginFiles({ keeping: source });
    const seller = await serviceFor(t, shop.config(endpoints, { settings: { plugins } }), { files });
    const fresh = () => identified(generatePaymentId(), 'a/e', alice, seller);
    const buy = (payload: object, headers = {}) => seller.post('a/e', {}, { ...paidBy(payload), ...headers });
    const payload = await fresh();
    const first = await buy(payload);
    await costs(0n, async () => {
      const again = await buy(payload, { 'X-Kept': '1' });
      assert.equal(await again.text(), await first.text());
      assert.deepEqual(settledAs(again), settledAs(first));
    });
    shop.upstream.json('/p', { price: 8 });
    assert.equal((await buy(await fresh())).status, 200);
    await assertRefused(await buy(payload, { 'X-Kept': '1' }), 402, 'Payment required');
  });

  it('that bought nothing is free again', async () => {
    const id = generatePaymentId();
    shop.upstream.on('/p', faults.serverError());
    await assertRefused(await send(await identified(id)), 502, 'API call failed');
    shop.upstream.json('/p', { price: 7 });
    const failed = { success: false, errorReason: 'insufficient_funds', transaction: '', network: shop.market.network };
    shop.facilitator.on('/settle', faults.json(failed));
    assert.equal((await send(await identified(id))).status, 402);
    shop.facilitator.reset();
    await costs(PRICE, async () => assert.equal((await send(await identified(id))).status, 200));
  });

  it('that may have been paid is not paid by another authorisation, and the same one may try again', async () => {
    const id = generatePaymentId();
    const payload = await identified(id);
    shop.facilitator.on('/settle', faults.serverError());
    await assertRefused(await send(payload), 401, 'Payment verification unavailable');
    shop.facilitator.reset();
    await costs(PRICE, async () => {
      const other = await send(await identified(id));
      const { reason } = await askedFor(other);
      assert.deepEqual([other.status, other.headers.get('retry-after'), reason], [402, '1', 'payment_in_progress']);
      const text = await (await send(payload)).text();
      assert.equal(await (await send(await identified(id))).text(), text);
    });
  });

  it('that may have been paid stays taken, whatever becomes of the same authorisation afterwards', async () => {
    const id = generatePaymentId();
    const payload = await identified(id);
    shop.facilitator.on('/settle', faults.serverError());
    await assertRefused(await send(payload), 401, 'Payment verification unavailable');
    shop.upstream.on('/p', faults.serverError());
    await assertRefused(await send(payload), 502, 'API call failed');
    const isBusy = async () =>
      assert.equal((await askedFor(await send(await identified(id)))).reason, 'payment_in_progress');
    shop.facilitator.reset();
    shop.upstream.json('/p', { price: 7 });
    await isBusy();
    // The first settlement comes through while the second one waits for the upstream.
    settleAndRefuse(shop);
    await costs(PRICE, async () => {
      assert.equal((await send(payload)).status, 402);
      shop.facilitator.reset();
      await isBusy();
    });
  });

  it('of several that ask at once one pays', async () => {
    const id = generatePaymentId();
    const settled = shop.facilitator.asked('/settle');
    await costs(PRICE, async () => {
      const payloads = await Promise.all(Array.from({ length: 5 }, () => identified(id)));
      const statuses = (await Promise.all(payloads.map((payload) => send(payload)))).map(({ status }) => status);
      assert.ok(statuses.includes(200), String(statuses));
      assert.ok(statuses.every((status) => status === 200 || status === 402));
    });
    assert.equal(shop.facilitator.asked('/settle'), settled + 1);
  });

  it('of an answer that is too long to be kept are not paid twice, either', async () => {
    shop.upstream.json('/long', 'x'.repeat(40_000));
    const id = generatePaymentId();
    await costs(PRICE, async () => {
      assert.equal((await send(await identified(id, 'a/long'), {}, 'a/long')).status, 200);
      const again = await send(await identified(id, 'a/long'), {}, 'a/long');
      await assertRefused(again, 409, 'The answer is too long to be given again');
    });
  });
});
