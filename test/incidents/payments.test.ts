import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { foundInLog, queryOf } from '../support/incidents.ts';
import { type RunningService, startTestService } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { type Account, paidBy, payloadFor } from '../support/x402-exact.ts';
import { openShop, type Shop } from '../support/x402-shop.ts';

let shop: Shop;
let service: RunningService;
let alice: Account;
before(async () => {
  shop = await openShop();
  alice = await shop.market.wallet(1_000_000n);
  service = await startTestService(shop.config({ exact: {} }));
});
after(async () => {
  await service?.stop();
  await shop?.close();
});

/** The log as the service's JSON log has it. */
const logText = () =>
  service.logs.map(({ level, message, fields }) => `${JSON.stringify({ level, msg: message, ...fields })}\n`).join('');

it('a payment of which nobody knows whether it was settled is found in the log, by what happened and by its nonce', async () => {
  const payload = await payloadFor(service, 'a/exact', alice);
  const { nonce } = payload.payload.authorization as { nonce: string };
  shop.facilitator.on('/settle', faults.serverError());
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
});
