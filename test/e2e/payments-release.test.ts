/** A payment that an operator releases can be used again. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PaymentState } from '../../builtins/shared/payment-mark.ts';
import { paymentOperations } from '../../builtins/shared/payment-operations.ts';
import { silentLog } from '../../plugins-sdk/log.ts';
import { MemoryArea } from '../../plugins-sdk/state.ts';
import { paymentsOn, steps, ticketOf } from '../support/payments.ts';

const NONCE = `0x${'1'.repeat(64)}`;
const ALICE = `0x${'aA'.repeat(20)}`;
const MALLORY = `0x${'bB'.repeat(20)}`;
const HOUR = 3_600_000;

/** The operations on payments that are all of one nonce. */
function desk() {
  const payments = paymentsOn(new MemoryArea());
  const operations = paymentOperations({
    ...{ type: 'x402-exact', payments, log: silentLog, cures: {} },
    refusal: ({ state }) => (state === 'unknown' ? 'its money may have been taken' : undefined),
  });
  const use = async (payer: string, state: PaymentState, asset = '') => {
    const ticket = ticketOf(`${asset}${payer} ${NONCE}`, { payer, nonce: NONCE });
    const request = steps(payments, ticket, HOUR);
    assert.deepEqual([await request.hold(), await request.redeem()], [true, true]);
    await payments.end(ticket, { outcome: { state }, life: HOUR });
  };
  const release = async (words: Readonly<Record<string, string>> = {}) => {
    const results = (await operations['payments release']?.({ id: NONCE, ...words })) ?? [];
    return results.map(({ payer, result, refused }) => ({
      payer,
      ...(result && { result }),
      ...(refused && { refused }),
    }));
  };
  const isTaken = async (payer: string) =>
    (await payments.find(NONCE)).some((mark) => mark.payer === payer && mark.by !== undefined);
  return { use, release, isTaken };
}

const again = (payer: string) => ({ payer, result: 'it can be used again' });
const refused = (payer: string, text: string) => ({ payer, refused: text });

describe('payments release', () => {
  it('asks for the payer where several have chosen one nonce, and frees only the payment of that one', async () => {
    const { use, release, isTaken } = desk();
    for (const payer of [ALICE, MALLORY]) await use(payer, 'answered');
    const several = (payer: string) =>
      refused(payer, `several payments are known by ${NONCE}: for this one add --payer ${payer}`);
    assert.deepEqual(await release(), [several(ALICE), several(MALLORY)]);
    assert.deepEqual(await release({ force: 'yes' }), [several(ALICE), several(MALLORY)]);
    assert.deepEqual(await release({ payer: ALICE.toLowerCase() }), [again(ALICE)]);
    assert.deepEqual([await isTaken(ALICE), await isTaken(MALLORY)], [false, true]);
    assert.deepEqual(await release({ payer: `0x${'cc'.repeat(20)}` }), []);
  });

  it("is not stopped by a stranger's payment with the same nonce, which can't be released", async () => {
    const { use, release, isTaken } = desk();
    await use(MALLORY, 'unknown');
    await use(ALICE, 'answered');
    assert.deepEqual(await release({ payer: ALICE }), [again(ALICE)]);
    assert.deepEqual(await release({ payer: MALLORY }), [refused(MALLORY, 'its money may have been taken')]);
    assert.equal(await isTaken(MALLORY), true);
  });

  it('tells of each payment of a payer, although one of them is refused', async () => {
    const { use, release } = desk();
    await use(ALICE, 'unknown', 'other asset ');
    await use(ALICE, 'answered');
    assert.deepEqual(await release({ payer: ALICE }), [refused(ALICE, 'its money may have been taken'), again(ALICE)]);
  });
});
