/** The ledger takes no payment that it could have forgotten. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ledgerIn } from '../../../builtins/auth-x402/ledger.ts';
import { StateUnreadable } from '../../../plugins-sdk/state/area.ts';
import { StateStore } from '../../../plugins-sdk/state/store.ts';
import { MemoryArea, type StateArea } from '../../../plugins-sdk/state.ts';
import { chainFor } from '../../support/chain.ts';
import { suite } from '../../support/lifetime.ts';
import { ACCEPTED, GRACE, payingOn } from './x402-clock.ts';

const DAY = 86_400_000;

describe('the ledger of payments', () => {
  const terms = (area: StateArea, now: number, life: number, isInForce = true) =>
    ledgerIn(area, life, () => now)(isInForce);
  const at = async (area: StateArea, now: number) => (await terms(area, now, DAY)).began;

  it('begins once, whoever races to begin it', async () => {
    const area = new MemoryArea();
    const all = await Promise.all(Array.from({ length: 16 }, (_, index) => at(area, DAY + index)));
    assert.equal(new Set(all).size, 1);
    assert.equal(await at(area, 2 * DAY), all[0]);
  });

  it('begins anew where payments are to be remembered for longer, and stays for a shorter time', async () => {
    const area = new MemoryArea();
    assert.deepEqual(await terms(area, 10, DAY), { began: 10, life: DAY });
    assert.deepEqual(await terms(area, 20, DAY - 1), { began: 10, life: DAY });
    assert.deepEqual(await terms(area, 25, DAY + 1, false), { began: 10, life: DAY });
    assert.deepEqual(await terms(area, 30, DAY + 1), { began: 30, life: DAY + 1 });
    assert.deepEqual(await terms(area, 40, DAY), { began: 30, life: DAY + 1 });
  });

  for (const text of ['', 'null', '{}', '{"began":"x"}', '{"began":1}'])
    it(`that somebody else wrote stops all payments: ${text}`, async () => {
      const area = new MemoryArea();
      await area.compareAndSet('ledger', undefined, text);
      await assert.rejects(at(area, 0), new StateUnreadable('x402:ledger'));
    });
});

describe('a config whose expiry is longer than that of the one before, with a clock of its own before a real chain', async () => {
  const SHORT = 60_000;
  const LONG = 3_600_000;
  /** For so much longer payments are remembered than any is accepted: clocks differ. */
  const MARGIN = 900_000;

  const chain = await chainFor(suite);
  const { endpoint, pay, plugin } = payingOn(chain);

  /** Two configs of one service, the first with the short expiry. */
  async function configs() {
    const clock = { now: 0 };
    const taking = async (states: StateStore, expiry: number) => {
      const one = endpoint(expiry);
      const { buy } = await plugin(clock, [one], states);
      return (txHash: string) => buy(one, txHash);
    };
    const states = new StateStore();
    const short = await taking(states, SHORT);
    return { clock, short, reload: (expiry = LONG) => taking(new StateStore(states), expiry) };
  }

  for (const [what, behind] of [
    ['', 0],
    [', even if the clock of the chain is an hour ahead', 3_600_000],
  ] as const) {
    it(`refuses what was redeemed under the former one${what}`, async () => {
      const { clock, short, reload } = await configs();
      const used = await pay();
      clock.now = used.minedAt - behind;
      assert.deepEqual(await short(used.txHash), ACCEPTED);
      const long = await reload();
      for (const age of [GRACE + SHORT, GRACE + LONG]) {
        clock.now = used.minedAt + age;
        assert.equal(await long(used.txHash), 'Payment already used');
      }
      clock.now += 1;
      assert.equal(await long(used.txHash), 'Payment already used');
      clock.now = used.minedAt + GRACE + LONG + MARGIN;
      assert.equal(await long(used.txHash), 'Payment too old');
    });
  }

  it('of more than an hour takes nothing from before, and what is younger for all of its time', async () => {
    const { clock, reload } = await configs();
    const old = await pay();
    await chain.provider.send('evm_increaseTime', [100]);
    const young = await pay();
    clock.now = young.minedAt;
    const longer = await reload(2 * LONG);
    assert.equal(await longer(old.txHash), 'Payment too old');
    clock.now = young.minedAt + GRACE + 2 * LONG;
    assert.deepEqual(await longer(young.txHash), ACCEPTED);
    assert.equal(await longer(young.txHash), 'Payment already used');
    clock.now += 1;
    assert.equal(await longer(young.txHash), 'Payment already used');
  });

  it('takes what is younger than all that were redeemed, for all of its own time', async () => {
    const { clock, short, reload } = await configs();
    const old = await pay();
    clock.now = old.minedAt;
    assert.deepEqual(await short(old.txHash), ACCEPTED);
    const long = await reload();
    await chain.provider.send('evm_increaseTime', [100]);
    const young = await pay();
    assert.ok(young.minedAt > old.minedAt);
    clock.now = young.minedAt + GRACE + LONG;
    assert.deepEqual(await long(young.txHash), ACCEPTED);
    assert.equal(await long(young.txHash), 'Payment already used');
  });
});
