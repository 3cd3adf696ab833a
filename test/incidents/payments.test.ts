/** Alerts tell when payments go wrong. */
import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import { assertFiring, withoutPromtool } from '../support/alerts.ts';
import { foundInLog, queryOf } from '../support/incidents.ts';
import { scrape } from '../support/metrics.ts';
import { type RunningService, startTestService } from '../support/service.ts';
import { stopAll } from '../support/stop-all.ts';
import { faults } from '../support/upstream.ts';
import { payer, payNative, proofHeader, termsOn } from '../support/x402.ts';
import { type Account, PRICE, paidBy, payloadFor } from '../support/x402-exact.ts';
import { openShop, type Shop } from '../support/x402-shop.ts';

let shop: Shop;
let service: RunningService;
let alice: Account;
before(async () => {
  shop = await openShop();
  alice = await shop.market.wallet(1_000_000n);
  service = await startTestService(
    shop.config({ exact: {}, native: { auth: termsOn(shop.chain, PRICE) } }, { settings: { metrics: { port: 0 } } }),
  );
});
after(() => stopAll(service, shop));

/** The log as the service's JSON log has it. */
const logText = () =>
  service.logs.map(({ level, message, fields }) => `${JSON.stringify({ level, msg: message, ...fields })}\n`).join('');

it('a payment of which nobody knows whether it was settled is found in the log, by what happened and by its nonce', async (t) => {
  const payload = await payloadFor(service, 'a/exact', alice);
  const { nonce } = payload.payload.authorization as { nonce: string };
  shop.facilitator.on('/settle', faults.serverError());
  const before = { scrape: await scrape(service), minutes: 30 };
  const response = await service.post('a/exact', {}, paidBy(payload));
  assert.equal(response.status, 401);
  const requestId = response.headers.get('x-request-id');
  const found = await foundInLog('It is not known whether a payment was settled', logText());
  assert.deepEqual(found, [{ requestId, payer: alice.address, nonce, said: 'settle: HTTP status 500' }]);

  const symptom = 'A client says that it has paid and has nothing';
  const text = await queryOf(symptom);
  assert.match(text, /"TX"/);
  const msg = 'it is not known whether a payment was settled';
  assert.deepEqual(await foundInLog(symptom, logText().replaceAll(nonce, 'TX')), [
    { msg, requestId, payer: alice.address },
  ]);
  if (withoutPromtool === false) {
    const alerts = ['SettlementsUnknown'];
    await assertFiring(t, [before], alerts, []);
    await assertFiring(t, [before, { scrape: await scrape(service), minutes: 3 }], alerts, alerts);
  }
  shop.facilitator.reset();
});

describe('an alert says', { skip: withoutPromtool }, () => {
  /** Which alerts fire after what happens, and not before. */
  async function assertFires(t: TestContext, alerts: readonly string[], happen: () => Promise<void>) {
    const before = { scrape: await scrape(service), minutes: 30 };
    await assertFiring(t, [before], alerts, []);
    await happen();
    await assertFiring(t, [before, { scrape: await scrape(service), minutes: 3 }], alerts, alerts);
  }

  it('that the facilitator is away, and that nothing is sold', async (t) => {
    shop.facilitator.on('/verify', faults.serverError());
    await assertFires(t, ['FacilitatorAway', 'StandardSalesStopped'], async () => {
      for (let count = 0; count < 6; count++) {
        const paid = paidBy(await payloadFor(service, 'a/exact', alice));
        assert.equal((await service.post('a/exact', {}, paid)).status, 401);
      }
    });
    shop.facilitator.reset();
  });

  it('that payments on chain buy nothing, and that they are given back', async (t) => {
    const bob = payer(shop.chain, 2);
    await assertFires(t, ['SalesStopped'], async () => {
      for (let count = 0; count < 6; count++)
        assert.equal((await service.post('a/native', {}, { 'X-Payment-Proof': '{}' })).status, 401);
    });
    const transaction = await payNative(bob, PRICE);
    shop.upstream.on('/p', faults.serverError());
    await assertFires(t, ['PaymentsRefunded'], async () => {
      const proof = await proofHeader(bob, service, 'a/native', transaction);
      assert.equal((await service.post('a/native', {}, proof)).status, 502);
    });
  });
});
