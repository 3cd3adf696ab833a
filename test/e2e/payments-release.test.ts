/** A payment that an operator releases can be used again. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { paymentOperations } from '../../builtins/shared/payment-operations.ts';
import { type Fate, PaymentRecords } from '../../builtins/shared/payment-records.ts';
import { Payments, type Ticket, ticketFor } from '../../builtins/shared/payments.ts';
import { StateStore } from '../../plugins-sdk/state/state.ts';
import { MemoryArea, StateKey } from '../../plugins-sdk/state.ts';

const NONCE = `0x${'1'.repeat(64)}`;
const ALICE = `0x${'aA'.repeat(20)}`;
const MALLORY = `0x${'bB'.repeat(20)}`;
const HOUR = 3_600_000;

/** The operations on payments that are all of one nonce. */
function desk() {
  const now = Date.now;
  const nothing = () => undefined;
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const payments = new Payments(new MemoryArea({ now }));
  const services = { stateEngine: undefined, states: new StateStore(), now, log };
  const records = new PaymentRecords(services, 'x402-exact', new StateKey<MemoryArea>('test records'));
  const operations = paymentOperations({
    ...{ type: 'x402-exact', payments, records, log, cures: {} },
    refusal: ({ fate }) => (fate === 'unknown' ? 'its money may have been taken' : undefined),
  });
  const use = async (payer: string) => {
    const ticket = ticketFor(`${payer} ${NONCE}`);
    assert.equal(await payments.reserve(ticket, HOUR), undefined);
    assert.equal(await payments.confirm(ticket, HOUR), true);
    return ticket;
  };
  const note = ({ payment, token }: Ticket, payer: string, fate: Fate) =>
    records.note({
      ...{ payment, token, fate, since: now(), requestId: '0x1', endpoint: 'a/e', network: 'eip155:1' },
      ...{ asset: '0x2', amount: '1', payer, nonce: NONCE },
    });
  const release = async (words: Readonly<Record<string, string>> = {}) => {
    const results = (await operations['payments release']?.({ id: NONCE, ...words })) ?? [];
    return results.map(({ payer, result, refused }) => ({
      payer,
      ...(result && { result }),
      ...(refused && { refused }),
    }));
  };
  const taken = async (payer: string) => (await payments.standing(`${payer} ${NONCE}`.toLowerCase())).taken;
  return { payments, use, note, release, taken };
}

const again = (payer: string) => ({ payer, result: 'it can be used again' });
const refused = (payer: string, text: string) => ({ payer, refused: text });

describe('payments release', () => {
  it('asks for the payer where several have chosen one nonce, and frees only the payment of that one', async () => {
    const { use, note, release, taken } = desk();
    for (const payer of [ALICE, MALLORY]) await note(await use(payer), payer, 'answered');
    const several = (payer: string) =>
      refused(payer, `several payments are known by ${NONCE}: for this one add --payer ${payer}`);
    assert.deepEqual(await release(), [several(ALICE), several(MALLORY)]);
    assert.deepEqual(await release({ force: 'yes' }), [several(ALICE), several(MALLORY)]);
    assert.deepEqual(await release({ payer: ALICE.toLowerCase() }), [again(ALICE)]);
    assert.deepEqual([await taken(ALICE), await taken(MALLORY)], [undefined, 'redeemed']);
    assert.deepEqual(await release({ payer: `0x${'cc'.repeat(20)}` }), []);
  });

  it("is not stopped by a stranger's payment with the same nonce, which can't be released", async () => {
    const { use, note, release, taken } = desk();
    await note(await use(MALLORY), MALLORY, 'unknown');
    await note(await use(ALICE), ALICE, 'answered');
    assert.deepEqual(await release({ payer: ALICE }), [again(ALICE)]);
    assert.deepEqual(await release({ payer: MALLORY }), [refused(MALLORY, 'its money may have been taken')]);
    assert.equal(await taken(MALLORY), 'redeemed');
  });

  it('tells of each payment of a payer, although one of them is refused', async () => {
    const { payments, use, note, release } = desk();
    const other = ticketFor(`other asset ${NONCE}`);
    await payments.reserve(other, HOUR);
    await note(other, ALICE, 'unknown');
    await note(await use(ALICE), ALICE, 'answered');
    assert.deepEqual(await release({ payer: ALICE }), [refused(ALICE, 'its money may have been taken'), again(ALICE)]);
  });

  it('leaves the mark of a use alone of which nothing is recorded, but by force', async () => {
    const { payments, use, note, release, taken } = desk();
    const first = await use(ALICE);
    await note(first, ALICE, 'given back');
    await payments.release(first);
    await use(ALICE);
    assert.deepEqual(await release(), [
      refused(
        ALICE,
        'a request of which nothing is recorded has used it: wait for its end in the log, or use --force where its process has died',
      ),
    ]);
    assert.equal(await taken(ALICE), 'redeemed');
    assert.deepEqual(await release({ force: 'yes' }), [again(ALICE)]);
    assert.equal(await taken(ALICE), undefined);
  });
});
