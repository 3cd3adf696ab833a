import assert from 'node:assert/strict';
import { afterEach, describe, it, type TestContext } from 'node:test';
import type { PaymentPayload } from '@x402/core/types';
import { finished, submitted } from '../support/async.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { reload } from '../support/reload.ts';
import { serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { askedFor, PRICE, paidBy, payloadFor, settledAs } from '../support/x402-exact.ts';
import { shopFor } from '../support/x402-shop.ts';

const USED = 'invalid_exact_evm_nonce_already_used';
const BUSY = 'Payment is being settled, try again';

describe('x402-exact: one authorisation buys one answer, and nothing else costs anything', async () => {
  const shop = await shopFor(suite);
  const cache = { maxAge: 600_000 };
  const config = shop.config({ sync: {}, cached: { cache }, async: { mode: 'async' }, shared: { cache } });
  const service = await serviceFor(suite, config);
  const alice = await shop.market.wallet(1_000_000n);

  afterEach(() => {
    shop.upstream.json('/p', { price: 7 });
    shop.facilitator.reset();
  });

  const balance = (account = alice) => shop.market.balance(account.address);
  const send = (payload: PaymentPayload, endpoint = 'a/sync') => service.post(endpoint, {}, paidBy(payload));
  const assertAsked = async (response: Response, error: string) => {
    assert.equal(((await response.json()) as { error: string }).error, error);
    assert.equal(response.status, 402);
    assert.equal((await askedFor(response)).error, error);
  };
  const outOfOrder = (t: TestContext) => {
    shop.upstream.on('/p', faults.serverError());
    t.after(() => shop.upstream.json('/p', { price: 7 }));
  };

  it('a second request with it is refused, also after a reload, and at another endpoint', async () => {
    const [payload, had] = [await payloadFor(service, 'a/sync', alice), await balance()];
    await verifyEncoded(await send(payload), TEST_ADDRESS);
    await assertAsked(await send(payload), USED);
    assert.equal((await reload(service, config)).done, true);
    await assertAsked(await send(payload), USED);
    await assertAsked(await send(payload, 'a/cached'), USED);
    assert.equal(await balance(), had - PRICE);
  });

  it('of 20 at once one gets an answer', async () => {
    const [payload, had] = [await payloadFor(service, 'a/sync', alice), await balance()];
    const settled = shop.facilitator.asked('/settle');
    const responses = await Promise.all(Array.from({ length: 20 }, () => send(payload)));
    const good = responses.filter(({ status }) => status === 200);
    assert.equal(good.length, 1);
    for (const response of responses)
      if (response.status !== 200) await assertAsked(response, response.headers.has('retry-after') ? BUSY : USED);
    assert.equal(await balance(), had - PRICE);
    assert.equal(shop.facilitator.asked('/settle'), settled + 1);
  });

  it('while a request holds it others are told to try again; it is used once it is settled', async () => {
    const payload = await payloadFor(service, 'a/sync', alice);
    const assertBusy = async () => {
      const response = await send(payload, 'a/cached');
      assert.equal(response.headers.get('retry-after'), '1');
      assert.equal((await askedFor(response)).reason, 'payment_in_progress');
      await assertAsked(response, BUSY);
    };
    shop.upstream.on('/p', async (...args) => {
      await assertBusy();
      return faults.json({ price: 7 })(...args);
    });
    shop.facilitator.on('/settle', async (...args) => {
      await assertBusy();
      return shop.facilitator.true['/settle'](...args);
    });
    await verifyEncoded(await send(payload), TEST_ADDRESS);
    await assertAsked(await send(payload), USED);
  });

  it('an upstream that fails costs nothing, and the authorisation is as good as new', async (t) => {
    outOfOrder(t);
    const [payload, had] = [await payloadFor(service, 'a/sync', alice), await balance()];
    const settled = shop.facilitator.asked('/settle');
    for (let i = 0; i < 5; i++) {
      const response = await send(payload);
      assert.equal(response.headers.get('payment-response'), null);
      await assertRefused(response, 502, 'API call failed');
    }
    assert.equal(shop.facilitator.asked('/settle'), settled);
    shop.upstream.json('/p', { price: 7 });
    await verifyEncoded(await send(payload), TEST_ADDRESS);
    assert.equal(await balance(), had - PRICE);
  });

  it('so does an answer that cannot be encoded, and an async request that fails', async (t) => {
    shop.upstream.json('/p', { price: -7 });
    const [payload, had] = [await payloadFor(service, 'a/async', alice), await balance()];
    assert.equal((await send(payload)).status, 502);
    outOfOrder(t);
    const record = await finished(service, await submitted(await send(payload, 'a/async')));
    assert.deepEqual([record.status, record.error], ['failed', 'API call failed']);
    assert.equal(await balance(), had);
  });

  it('what the facilitator does not verify is refused in its words, and can be tried again', async () => {
    const bob = await shop.market.wallet(PRICE - 1n);
    const payload = await payloadFor(service, 'a/sync', bob);
    const calls = shop.upstream.requests.length;
    shop.facilitator.json('/verify', { isValid: false, invalidReason: 'insufficient_funds', invalidMessage: 'x' });
    await assertAsked(await send(payload), 'insufficient_funds');
    shop.facilitator.json('/verify', { isValid: false, invalidReason: 'Wer ist <b>Bob</b>?' });
    await assertAsked(await send(payload), 'unexpected_verify_error');
    shop.facilitator.json('/verify', { isValid: false, invalidReason: 'insufficient_funds' }, 400);
    await assertAsked(await send(payload), 'insufficient_funds');
    shop.facilitator.reset();
    await assertAsked(await send(payload), 'invalid_exact_evm_transaction_simulation_failed');
    const forged = { ...payload.payload, signature: `0x${'11'.repeat(64)}1b` };
    await assertAsked(await send({ ...payload, payload: forged }), 'invalid_exact_evm_signature');
    assert.equal(shop.upstream.requests.length, calls);
  });

  /** A wallet that is emptied between the verification of its payment and the settlement. */
  const emptied = async (endpoint: string) => {
    const carol = await shop.market.wallet(PRICE);
    shop.upstream.on('/p', async (...args) => {
      await shop.market.empty(carol);
      return faults.json({ price: 9 })(...args);
    });
    return { carol, payload: await payloadFor(service, endpoint, carol) };
  };

  it('a settlement that fails shows nothing: whoever asks next pays for the answer that was made', async () => {
    const { carol, payload } = await emptied('a/cached');
    const response = await send(payload, 'a/cached');
    const { errorReason, ...failed } = settledAs(response);
    const { network } = shop.market;
    assert.deepEqual(failed, { success: false, transaction: '', network, payer: carol.address });
    assert.match(errorReason, /^invalid_exact_evm_\w+$/);
    await assertAsked(response, errorReason);
    shop.upstream.json('/p', { price: 8 });
    const bought = await send(await payloadFor(service, 'a/cached', alice), 'a/cached');
    assert.match(bought.headers.get('cache-status') ?? '', /; hit;/);
    assert.equal(settledAs(bought).success, true);
    assert.equal(BigInt((await verifyEncoded(bought, TEST_ADDRESS)).data), 9n);
  });

  it('nor has anybody else, who waits for the same answer, to do with it', async () => {
    const carol = await shop.market.wallet(PRICE);
    const [hers, mine] = [await payloadFor(service, 'a/shared', carol), await payloadFor(service, 'a/shared', alice)];
    const [had, calls, verified] = [await balance(), shop.upstream.requests.length, shop.facilitator.asked('/verify')];
    const { facilitator } = shop;
    const isVerified = () => facilitator.asked('/verify') > verified + 1 && facilitator.open === 0;
    shop.upstream.on('/p', async (...args) => {
      await facilitator.until(isVerified);
      await shop.market.empty(carol);
      return faults.json({ price: 9 })(...args);
    });
    const first = send(hers, 'a/shared');
    await shop.upstream.until(() => shop.upstream.requests.length > calls);
    const second = await send(mine, 'a/shared');
    assert.equal(BigInt((await verifyEncoded(second, TEST_ADDRESS)).data), 9n);
    assert.equal((await first).status, 402);
    assert.equal(await balance(), had - PRICE);
    assert.equal(shop.upstream.requests.length, calls + 1);
  });

  it('nor does one of an async request, whose record says why', async () => {
    const { payload } = await emptied('a/async');
    const begun = await submitted(await send(payload, 'a/async'));
    const { status, error } = await finished(service, begun);
    const poll = await fetch(service.url + begun.pollUrl);
    assert.deepEqual([status, error], ['failed', settledAs(poll).errorReason]);
    assert.equal(settledAs(poll).success, false);
  });

  it('an authorisation whose settlement failed can be used again while it is valid', async () => {
    const failed = { success: false, errorReason: 'insufficient_funds', transaction: '' };
    shop.facilitator.json('/settle', { ...failed, network: shop.market.network });
    const payload = await payloadFor(service, 'a/sync', alice);
    for (let i = 0; i < 6; i++) {
      const { error } = (await (await send(payload)).json()) as { error: string };
      assert.equal(error, 'insufficient_funds');
    }
    shop.facilitator.reset();
    assert.equal((await send(payload)).status, 200);
  });
});
