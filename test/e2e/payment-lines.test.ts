/** Each payment is a line in the log and a count, whatever becomes of it. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { scrape } from '../support/metrics.ts';
import { serviceFor } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { NATIVE, payer, payNative, proofHeader, termsOn } from '../support/x402.ts';
import { PRICE, paidBy, payloadFor, settledAs } from '../support/x402-exact.ts';
import { shopWithPayer } from '../support/x402-shop.ts';

const MESSAGES = /^(?:a payment|payment|it is not known)/;

const { shop, alice } = await shopWithPayer(suite);
const native = { auth: termsOn(shop.chain, PRICE) };
const config = shop.config({ exact: {}, native, other: native }, { settings: { metrics: { port: 0 } } });
const service = await serviceFor(suite, config);

/** The lines about payments since then, as `[level, message, fields]`. */
const linesFrom = (from: number) => {
  const lines = service.logs.slice(from).filter(({ message }) => MESSAGES.test(message));
  return lines.map(({ level, message, fields }) => [level, message, fields]);
};
const requestId = (response: Response) => response.headers.get('x-request-id');
const settlements = async () => (await scrape(service)).table('x402_exact_settlements_total');
const sale = (endpoint: string, asset: string) => `a ${endpoint} ${shop.market.network} ${asset}`;

it('a payment that is settled is a line and a count, and so is one that is not', async () => {
  const { network, asset } = shop.market;
  const sold = { endpoint: 'a/exact', network, asset, amount: String(PRICE) };
  const payload = await payloadFor(service, 'a/exact', alice);
  const { nonce } = payload.payload.authorization as { nonce: string };
  const whose = { payer: alice.address, nonce };
  const from = service.logs.length;

  shop.facilitator.json('/settle', { success: false, errorReason: 'insufficient_funds', transaction: '', network });
  const refused = await service.post('a/exact', {}, paidBy(payload));
  assert.equal(refused.status, 402);
  shop.facilitator.on('/settle', faults.serverError());
  const unknown = await service.post('a/exact', {}, paidBy(payload));
  assert.equal(unknown.status, 401);
  shop.facilitator.reset();
  const answered = await service.post('a/exact', {}, paidBy(payload));
  assert.equal(answered.status, 200);

  const { transaction } = settledAs(answered);
  assert.match(transaction, /^0x[0-9a-f]{64}$/);
  const about = (response: Response) => ({ requestId: requestId(response), ...sold, ...whose });
  assert.deepEqual(linesFrom(from), [
    ['warn', 'a payment was not settled', { ...about(refused), detail: 'insufficient_funds' }],
    ['error', 'it is not known whether a payment was settled', { ...about(unknown), said: 'settle: HTTP status 500' }],
    ['info', 'payment settled', { ...about(answered), transaction }],
  ]);
  const of = sale('exact', asset);
  assert.deepEqual(await settlements(), { [`${of} settled`]: 1, [`${of} unsettled`]: 1, [`${of} unknown`]: 1 });
});

it('a payment that is redeemed is a line and a count, and so is what becomes of it', async () => {
  const bob = payer(shop.chain, 2);
  const transaction = await payNative(bob, PRICE);
  const fields = {
    ...{ transaction, payer: bob.address, endpoint: 'a/native' },
    ...{ network: shop.market.network, asset: NATIVE, amount: String(PRICE) },
  };
  const from = service.logs.length;
  const send = async () => service.post('a/native', {}, await proofHeader(bob, service, 'a/native', transaction));

  shop.upstream.on('/p', faults.serverError());
  const failed = await send();
  assert.equal(failed.status, 502);
  shop.upstream.json('/p', { price: 7 });
  const answered = await send();
  assert.equal(answered.status, 200);

  assert.deepEqual(linesFrom(from), [
    ['info', 'payment redeemed', { requestId: requestId(failed), ...fields }],
    ['info', 'payment given back', { requestId: requestId(failed), ...fields }],
    ['info', 'payment redeemed', { requestId: requestId(answered), ...fields }],
  ]);
  const [one, other] = [sale('native', NATIVE), sale('other', NATIVE)];
  assert.deepEqual((await scrape(service)).table('x402_payments_total'), {
    ...{ [`${one} redeemed`]: 2, [`${one} refunded`]: 1, [`${one} kept`]: 0 },
    ...{ [`${other} redeemed`]: 0, [`${other} refunded`]: 0, [`${other} kept`]: 0 },
  });
});
