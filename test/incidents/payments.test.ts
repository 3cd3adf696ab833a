/** Alerts tell when payments go wrong. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { assertFires, assertFiring, withoutPromtool } from '../support/alerts.ts';
import { foundInLog } from '../support/incidents.ts';
import { suite } from '../support/lifetime.ts';
import { scrape } from '../support/metrics.ts';
import { serviceFor } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';
import { payer, payNative, proofHeader, termsOn } from '../support/x402.ts';
import { PRICE, paidBy, payloadFor } from '../support/x402-exact.ts';
import { shopWithPayer } from '../support/x402-shop.ts';

const { shop, alice } = await shopWithPayer(suite);
/** Terms whose node does what a test has it do. */
const askedAt = (path: string) => ({ auth: { ...termsOn(shop.chain, PRICE), rpc: shop.upstream.url + path } });
const service = await serviceFor(
  suite,
  shop.config(
    {
      exact: {},
      native: { auth: termsOn(shop.chain, PRICE), parameters: [{ name: 'id' }] },
      faulty: askedAt('/rpc'),
      long: askedAt('/long'),
    },
    { server: { rateLimit: { max: 1000, x402: { max: 1000 } } }, settings: { metrics: { port: 0 } } },
  ),
  { env: { LOG_FORMAT: 'json' } },
);

/** What the metrics show now, as seen for so many minutes. */
const seenFor = async (minutes: number) => ({ scrape: await scrape(service), minutes });

it('a payment of which nobody knows whether it was settled is found in the log, by what happened and by its nonce', async (t) => {
  const payload = await payloadFor(service, 'a/exact', alice);
  const { nonce } = payload.payload.authorization as { nonce: string };
  shop.facilitator.on('/settle', faults.serverError());
  const before = await seenFor(30);
  const response = await service.post('a/exact', {}, paidBy(payload));
  assert.equal(response.status, 401);
  const requestId = response.headers.get('x-request-id');
  const found = await foundInLog('It is not known whether a payment was settled', service.written());
  assert.deepEqual(found, [{ requestId, payer: alice.address, nonce, said: 'settle: HTTP status 500' }]);

  const symptom = 'A client paid and got no answer';
  const msg = 'it is not known whether a payment was settled';
  assert.deepEqual(await foundInLog(symptom, service.written(), { TX: nonce }), [
    { msg, requestId, payer: alice.address },
  ]);
  if (withoutPromtool === false) await assertFires(t, [before, await seenFor(3)], ['SettlementsUnknown']);
  shop.facilitator.reset();
});

describe('an alert says', { skip: withoutPromtool }, () => {
  /** Which alerts fire after what happens, and not before. */
  async function assertThen(t: TestContext, alerts: readonly string[], happen: () => Promise<void>) {
    const before = await seenFor(30);
    await happen();
    await assertFires(t, [before, await seenFor(3)], alerts);
  }

  /** Six payments that end so. */
  async function paySix(status: number) {
    for (let count = 0; count < 6; count++) {
      const paid = paidBy(await payloadFor(service, 'a/exact', alice));
      assert.equal((await service.post('a/exact', {}, paid)).status, status);
    }
  }

  it('that the facilitator is away, and that nothing is sold', async (t) => {
    shop.facilitator.on('/verify', faults.serverError());
    await assertThen(t, ['FacilitatorAway', 'StandardSalesStopped'], () => paySix(401));
    shop.facilitator.reset();
  });

  it('that the facilitator settles nothing', async (t) => {
    const failed = { success: false, errorReason: 'insufficient_funds', transaction: '', network: shop.market.network };
    shop.facilitator.json('/settle', failed);
    await assertThen(t, ['SettlementsFail'], () => paySix(402));
    shop.facilitator.reset();
  });

  it('nothing of what strangers send, or where they leave', async (t) => {
    const before = await seenFor(30);
    const bob = payer(shop.chain, 2);
    const unknown = (endpoint: string, digit: number) =>
      proofHeader(bob, service, endpoint, `0x${String(digit).repeat(64)}`);
    const leavings = () => service.logs.filter(({ fields }) => fields.status === 499).length;
    let left = new AbortController();
    const leave = async (endpoint: string, headers: Record<string, string>) => {
      left = new AbortController();
      const sent = { method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json', ...headers } };
      const url = `${service.url}/endpoints/${service.ids[endpoint]}`;
      await assert.rejects(fetch(url, { ...sent, signal: left.signal }), { name: 'AbortError' });
    };
    // The receipt of a transaction is as long as its sender wants: here a byte more than is taken.
    shop.upstream.on('/long', faults.big(1024 * 1024 + 1));
    shop.upstream.on('/rpc', () => left.abort());
    shop.facilitator.on('/verify', async (...asked) => {
      const before = leavings();
      left.abort();
      await eventually(() => leavings() > before, 'the end of a request');
      await shop.facilitator.true['/verify'](...asked);
    });
    for (let count = 0; count < 6; count++) {
      assert.equal((await service.post('a/native', {}, { 'X-Payment-Proof': '{}' })).status, 402);
      assert.equal((await service.post('a/native', {}, await unknown('a/native', count))).status, 401);
      assert.equal((await service.post('a/long', {}, await unknown('a/long', count))).status, 401);
      assert.equal((await service.post('a/exact', {}, { 'PAYMENT-SIGNATURE': '{}' })).status, 402);
    }
    for (let count = 0; count < 6; count++) {
      await leave('a/exact', paidBy(await payloadFor(service, 'a/exact', alice)));
      await leave('a/faulty', await unknown('a/faulty', count));
      // A payment is looked up by three questions.
      await shop.upstream.untilAborted('/rpc', 3 * (count + 1));
    }
    shop.facilitator.reset();
    assert.deepEqual((await scrape(service)).happened('x402_proofs_total'), { refused: 24 });
    const alerts = ['SalesStopped', 'StandardSalesStopped', 'FacilitatorAway', 'SettlementsFail'];
    await assertFiring(t, [before, await seenFor(3)], alerts, []);
  });

  it('that payments on chain buy nothing, and that they are given back', async (t) => {
    const bob = payer(shop.chain, 2);
    const transaction = await payNative(bob, PRICE);
    shop.upstream.on('/rpc', faults.serverError());
    await assertThen(t, ['SalesStopped'], async () => {
      const proof = await proofHeader(bob, service, 'a/faulty', transaction);
      for (let count = 0; count < 6; count++) assert.equal((await service.post('a/faulty', {}, proof)).status, 401);
    });
    const before = await seenFor(30);
    shop.upstream.on('/p', faults.json({}, 404));
    const given = await proofHeader(bob, service, 'a/native', transaction);
    assert.equal((await service.post('a/native', { id: 'none' }, given)).status, 502);
    const after = await scrape(service);
    assert.equal(after.table('failures_total')['a native requester'], 1);
    assert.equal(after.table('x402_proofs_total').refunded, 1);
    await assertFiring(t, [before, { scrape: after, minutes: 3 }], ['PaymentsRefunded'], []);
    shop.upstream.on('/p', faults.serverError());
    await assertThen(t, ['PaymentsRefunded'], async () => {
      const proof = await proofHeader(bob, service, 'a/native', transaction);
      assert.equal((await service.post('a/native', {}, proof)).status, 502);
    });
  });
});
