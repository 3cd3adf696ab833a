/** The audit record says which payment an answer was for. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { folderWith } from '../cli/run.ts';
import { auditLines } from '../support/audit.ts';
import { startTestService } from '../support/service.ts';
import { payer, payNative, proofHeader, termsOn } from '../support/x402.ts';
import { PRICE, paidBy, payloadFor, settledAs } from '../support/x402-exact.ts';
import { shopFor } from '../support/x402-shop.ts';

it('the audit record says which payment an answer was for, also of one from the cache or one that was withheld', async (t) => {
  const shop = await shopFor(t);
  const path = join(await folderWith(t), 'audit.jsonl');
  const native = { auth: termsOn(shop.chain, PRICE), cache: { maxAge: 600_000 } };
  const service = await startTestService(shop.config({ exact: {}, native }, { settings: { audit: { path } } }));
  const { network } = shop.market;
  const buy = async (status: number) => {
    const payload = await payloadFor(service, 'a/exact', alice);
    const { nonce } = payload.payload.authorization as { nonce: string };
    const response = await service.post('a/exact', {}, paidBy(payload));
    assert.equal(response.status, status, await response.text());
    return { requestId: response.headers.get('x-request-id'), nonce, response };
  };
  const redeem = async (account: ReturnType<typeof payer>) => {
    const transaction = await payNative(account, PRICE);
    const response = await service.post('a/native', {}, await proofHeader(account, service, 'a/native', transaction));
    assert.equal(response.status, 200, await response.text());
    return { requestId: response.headers.get('x-request-id'), transaction };
  };

  const alice = await shop.market.wallet(1_000_000n);
  const [bob, carol] = [payer(shop.chain, 2), payer(shop.chain, 3)];
  const sold = await buy(200);
  shop.facilitator.json('/settle', { success: false, errorReason: 'insufficient_funds', transaction: '', network });
  const unsold = await buy(402);
  const first = await redeem(bob);
  const second = await redeem(carol);
  await service.stop();

  const of = (transaction: string, { address }: { address: string }) => ({ network, payer: address, transaction });
  const unpaid = { network, payer: alice.address, nonce: unsold.nonce };
  const lines = await auditLines(path);
  assert.deepEqual(
    lines.map(({ requestId, payment, again, given }) => ({ requestId, payment, again, given })),
    [
      {
        requestId: sold.requestId,
        payment: { ...of(settledAs(sold.response).transaction, alice), nonce: sold.nonce },
        again: undefined,
        given: undefined,
      },
      { requestId: unsold.requestId, payment: unpaid, again: undefined, given: false },
      { requestId: first.requestId, payment: of(first.transaction, bob), again: undefined, given: undefined },
      { requestId: second.requestId, payment: of(second.transaction, carol), again: true, given: undefined },
    ],
  );
});
