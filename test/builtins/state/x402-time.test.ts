/** A payment is accepted for a time after its block, and remembered for as long. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { Refusal } from '../../../plugins-sdk/index.ts';
import { StateStore } from '../../../plugins-sdk/state/store.ts';
import { MemoryArea } from '../../../plugins-sdk/state.ts';
import { chainFor } from '../../support/chain.ts';
import { suite } from '../../support/lifetime.ts';
import { ACCEPTED, GRACE, payingOn } from './x402-clock.ts';

/** Milliseconds: the expiries of the two endpoints. */
const LONG = 900_000;
const SHORT = 60_000;
const HOUR = 3_600_000;
/** For which any payment is remembered: 10 minutes, an hour, and 15 minutes since clocks differ. */
const REMEMBERED = 5_100_000;

describe('x402 and time, with a clock of its own before a real chain', async () => {
  const { endpoint, pay, plugin } = payingOn(await chainFor(suite));

  async function setUp(t: TestContext, capacity?: number) {
    const clock = { now: 0 };
    const [long, short] = [endpoint(LONG), endpoint(SHORT, `0x${'22'.repeat(32)}`)];
    const now = () => clock.now;
    const states = new StateStore();
    // The plugin takes what is kept under its key for the state that it would make itself.
    const keep: StateStore['keep'] = (key, version, make) => states.keep(key, version, made(make));
    const made = <T>(make: () => T) => {
      return (): T => {
        const state = make();
        return state instanceof MemoryArea && capacity ? (new MemoryArea({ capacity, now }) as T) : state;
      };
    };
    const { harness, ask, buy } = await plugin(clock, [long, short], { keep });
    t.after(() => harness.stop());
    return { clock, long, short, ask, buy, pay, harness };
  }

  it('a payment is accepted up to 10 minutes and the expiry after its block, and not a millisecond longer', async (t) => {
    const { clock, short, ask, pay } = await setUp(t);
    const { txHash, minedAt } = await pay();
    clock.now = minedAt + GRACE + SHORT + 1;
    assert.equal((await ask(short, txHash)).outcome, 'Payment too old');
    clock.now = minedAt + GRACE + SHORT;
    assert.deepEqual((await ask(short, txHash)).outcome, ACCEPTED);
  });

  const young = [0, GRACE + SHORT, GRACE + SHORT + 1, GRACE + LONG - 1, GRACE + LONG];
  for (const [when, behind, ages] of [
    ['as long as any endpoint would accept it', 0, young],
    ['also where this clock is behind that of the chain', HOUR, [GRACE + LONG + 1 - HOUR, 0, GRACE + LONG]],
  ] as const)
    it(`it is remembered ${when}`, async (t) => {
      const { clock, long, short, ask, buy, pay } = await setUp(t);
      const { txHash, minedAt } = await pay();
      clock.now = minedAt - behind;
      assert.deepEqual(await buy(short, txHash), ACCEPTED);
      for (const age of ages) {
        clock.now = minedAt + age;
        assert.equal((await ask(long, txHash)).outcome, 'Payment already used', `${age}`);
      }
      clock.now = minedAt + REMEMBERED;
      assert.equal((await ask(long, txHash)).outcome, 'Payment too old');
    });

  it('what was refunded is accepted again while it is young enough, with its count kept', async (t) => {
    const { clock, long, ask, pay } = await setUp(t);
    const { txHash, minedAt } = await pay();
    const refusal = new Refusal(502, 'API call failed');
    for (const age of [0, GRACE, GRACE + LONG - 1, GRACE + LONG]) {
      clock.now = minedAt + age;
      const { request, outcome } = await ask(long, txHash);
      assert.deepEqual(outcome, ACCEPTED);
      await request.run('concluded', { outcome: { kind: 'refused', refusal } });
    }
    assert.equal((await ask(long, txHash)).outcome, 'Payment already used');
  });

  it('a proof ends in the future, 10 minutes ahead at most', async (t) => {
    const { clock, long, ask, pay } = await setUp(t);
    const { txHash, minedAt } = await pay();
    clock.now = minedAt;
    const seconds = minedAt / 1000;
    assert.equal((await ask(long, txHash, seconds)).outcome, 'Payment proof expired');
    assert.equal((await ask(long, txHash, seconds + 601)).outcome, 'Payment proof valid for too long');
    clock.now = minedAt + 999;
    assert.equal((await ask(long, txHash, seconds)).outcome, 'Payment proof expired');
    clock.now = minedAt - 1;
    assert.equal((await ask(long, txHash, seconds + 600)).outcome, 'Payment proof valid for too long');
    clock.now = minedAt;
    assert.deepEqual((await ask(long, txHash, seconds + 600)).outcome, ACCEPTED);
    const next = await pay();
    clock.now = minedAt + 999;
    assert.deepEqual((await ask(long, next.txHash, seconds + 1)).outcome, ACCEPTED);
  });

  it('a full memory refuses what is new, and forgets nothing', async (t) => {
    // The ledger, two that were bought, and the list of the next one.
    const { clock, long, ask, buy, pay, harness } = await setUp(t, 4);
    const [one, two, three] = [await pay(), await pay(), await pay()];
    clock.now = three.minedAt;
    assert.deepEqual(await buy(long, one.txHash), ACCEPTED);
    assert.deepEqual(await buy(long, two.txHash), ACCEPTED);
    assert.equal((await ask(long, three.txHash)).outcome, 'Payment verification unavailable');
    const messages = harness.complaints.map(({ message }) => message);
    assert.deepEqual(messages, ['no room for another key among those that are still live']);
    assert.equal((await ask(long, one.txHash)).outcome, 'Payment already used');
    assert.equal((await ask(long, two.txHash)).outcome, 'Payment already used');
  });

  it('a hold whose check failed leaves its room', async (t) => {
    const { clock, long, ask, pay } = await setUp(t, 3);
    const { txHash, minedAt } = await pay();
    clock.now = minedAt;
    for (let n = 1; n < 5; n++)
      assert.equal((await ask(long, `0x${String(n).repeat(64)}`)).outcome, 'Payment not found');
    assert.deepEqual((await ask(long, txHash)).outcome, ACCEPTED);
  });
});
