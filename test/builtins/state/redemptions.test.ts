/** A redemption happens once, also where the engine fails or clocks differ. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { ledgerIn } from '../../../builtins/auth-x402/ledger.ts';
import { Redemptions } from '../../../builtins/auth-x402/redemptions.ts';
import type { Mined } from '../../../builtins/shared/chain.ts';
import { Payments, refusalOf } from '../../../builtins/shared/payments.ts';
import { isRefusal, Refusal } from '../../../plugins-sdk/index.ts';
import { Debts, MemoryArea, type StateArea, StateUnavailable } from '../../../plugins-sdk/state.ts';
import { ticketOf } from '../../support/payments.ts';

const START = 1_700_000_000_000;
const MINUTE = 60_000;
const LIFE = 15 * MINUTE;
const UNAVAILABLE = 'Payment verification unavailable';

/** Processes that share one engine, whose clock is the true one. */
function setUp(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const clock = { now: START };
  const memory = new MemoryArea({ now: () => clock.now });
  const flags = { commands: 0, failsAt: 0, isDone: true, isAway: false, isKnownAway: false, doubts: [] as string[] };
  /** `late` is waited for before anybody hears what was done. */
  const engine: typeof flags & { late?: (() => Promise<void>) | undefined } = flags;
  const ask = async <R>(command: () => Promise<R>): Promise<R> => {
    engine.commands += 1;
    const fails = engine.isAway || engine.commands === engine.failsAt;
    if (fails && (engine.isAway || !engine.isDone)) throw new StateUnavailable('cut');
    const result = await command();
    await engine.late?.();
    if (fails) throw new StateUnavailable('cut');
    return result;
  };
  const area: StateArea = {
    get: (key) => ask(() => memory.get(key)),
    compareAndSet: (...args) => ask(() => memory.compareAndSet(...args)),
    takeTokens: (...args) => ask(() => memory.takeTokens(...args)),
  };
  const lines: string[] = [];
  const line = (message: string) => void lines.push(message);
  const log = { debug: line, info: line, warn: line, error: line };
  const debts = new Debts();
  const replica = (skew = 0) => {
    const now = () => clock.now + skew;
    const ledger = ledgerIn(area, 4_200_000, now);
    const stateEngine = { doubts: () => engine.doubts, available: () => !engine.isKnownAway };
    const payments = new Payments({ area, index: memory, stateEngine, debts, ending: new Set(), log });
    return new Redemptions({ payments, ledger, debts, now });
  };
  const started = async () => {
    const redemptions = replica();
    await redemptions.start();
    return redemptions;
  };
  const pass = async (milliseconds: number) => {
    clock.now += milliseconds;
    t.mock.timers.tick(milliseconds);
    for (let turn = 0; turn < 10; turn++) await new Promise((done) => setImmediate(done));
  };
  return { clock, engine, memory, lines, debts, replica, started, pass };
}

function minedAt(time: number): () => Promise<Mined> {
  const mined = { minedAt: time };
  // Of what is mined, only the time matters here.
  return async () => mined as Mined;
}

const LOST = 'a payment could not be given back: its payer has paid for nothing';

function claimed(verify: () => Promise<Mined>, isOver = () => false) {
  return [ticketOf('0x01'), verify, isOver] as const;
}

async function outcome(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return 'done';
  } catch (thrown) {
    const error = refusalOf(thrown);
    assert.ok(isRefusal(error), String(error));
    assert.equal(error.status, 401);
    return error.message;
  }
}

/** A payment whose hold its process could not end: the engine was away while the payment was verified. */
async function heldAndAway(t: TestContext) {
  const { clock, engine, replica, started, pass, lines } = setUp(t);
  const redemptions = await started();
  const paid = minedAt(clock.now);
  const away = async () => {
    engine.isAway = true;
    return paid();
  };
  assert.equal(await outcome(redemptions.redeem(...claimed(away))), UNAVAILABLE);
  return { engine, replica, pass, lines, redemptions, paid };
}

describe('a redemption whose engine fails at one command', () => {
  // List, hold, look at the ledger, redeem: each looks, and all but the third write.
  for (const failsAt of [1, 2, 3, 4, 5, 6, 7])
    for (const isDone of [true, false])
      it(`the ${failsAt}., ${isDone ? 'after' : 'before'} it was done: the payment buys nothing, and then one answer`, async (t) => {
        const { clock, engine, replica, started, pass } = setUp(t);
        const redemptions = await started();
        const paid = minedAt(clock.now);
        Object.assign(engine, { commands: 0, failsAt, isDone });
        assert.equal(await outcome(redemptions.redeem(...claimed(paid))), UNAVAILABLE);
        await pass(1000);
        assert.equal(await outcome(replica().redeem(...claimed(paid))), 'done');
        for (const one of [redemptions, replica()])
          assert.equal(await outcome(one.redeem(...claimed(paid))), 'Payment already used');
      });

  it('and stays away: the payment is given back once it is there again', async (t) => {
    const { engine, replica, pass, lines, paid } = await heldAndAway(t);
    for (let seconds = 0; seconds < 10; seconds++) await pass(1000);
    engine.isAway = false;
    assert.equal(await outcome(replica().redeem(...claimed(paid))), 'Payment already used');
    await pass(1000);
    assert.equal(await outcome(replica().redeem(...claimed(paid))), 'done');
    assert.deepEqual(lines, []);
  });

  it('and is told of the end while another request hears of the hold: that one does not call the payment used', async (t) => {
    const { engine, redemptions, pass, paid } = await heldAndAway(t);
    Object.assign(engine, { isAway: false, commands: 0 });
    engine.late = async () => {
      // The look at the mark, after the two commands of the list.
      if (engine.commands !== 3) return;
      engine.late = undefined;
      await pass(1000);
    };
    assert.equal(await outcome(redemptions.redeem(...claimed(paid))), UNAVAILABLE);
    assert.equal(await outcome(redemptions.redeem(...claimed(paid))), 'done');
    assert.equal(await outcome(redemptions.redeem(...claimed(paid))), 'Payment already used');
  });

  it('and never comes back: that is in the log', async (t) => {
    const { clock, engine, started, pass, lines } = setUp(t);
    const redemptions = await started();
    const ticket = await redemptions.redeem(...claimed(minedAt(clock.now)));
    engine.isAway = true;
    assert.equal(await redemptions.refund(ticket, true), true);
    for (let seconds = 0; seconds < 121; seconds++) await pass(1000);
    assert.deepEqual(lines, [LOST]);
  });

  for (const [what, isKnownAway] of [
    ['and never comes back', false],
    ['and is away already', true],
  ] as const)
    it(`${what} before anything is redeemed: nobody is said to have paid for nothing`, async (t) => {
      const { clock, engine, started, pass, lines } = setUp(t);
      const redemptions = await started();
      Object.assign(engine, { isAway: true, isKnownAway, commands: 0 });
      assert.equal(await outcome(redemptions.redeem(...claimed(minedAt(clock.now)))), UNAVAILABLE);
      for (let seconds = 0; seconds < 121; seconds++) await pass(1000);
      assert.deepEqual(lines, []);
      // To hold and to release; to an engine that is known to be away nothing is said again.
      assert.equal(engine.commands, isKnownAway ? 1 : 122);
    });

  it('and somebody is owed until the payment is given back', async (t) => {
    const { clock, engine, replica, started, pass, lines, debts } = setUp(t);
    const redemptions = await started();
    const paid = minedAt(clock.now);
    const ticket = await redemptions.redeem(...claimed(paid));
    engine.isAway = true;
    await redemptions.refund(ticket, true);
    assert.equal(debts.size, 1);
    await pass(5000);
    engine.isAway = false;
    await pass(1000);
    assert.equal(debts.size, 0);
    assert.equal(await outcome(replica().redeem(...claimed(paid))), 'done');
    assert.deepEqual(lines, []);
  });

  it('during a refund: it is given back once, later', async (t) => {
    const { clock, engine, started, pass } = setUp(t);
    const redemptions = await started();
    const paid = minedAt(clock.now);
    for (let refunds = 0; refunds < 4; refunds++) {
      const ticket = await redemptions.redeem(...claimed(paid));
      Object.assign(engine, { commands: 0, failsAt: refunds + 2, isDone: refunds % 2 === 0 });
      await redemptions.refund(ticket, true);
      engine.failsAt = 0;
      await pass(1000);
    }
    assert.equal(await outcome(redemptions.redeem(...claimed(paid))), 'Payment already used');
  });
});

describe('replicas whose clocks differ by 10 minutes either way', () => {
  const SKEWS = [-10 * MINUTE, 0, 10 * MINUTE];

  for (const first of SKEWS)
    for (const second of SKEWS)
      it(`${first / MINUTE} and ${second / MINUTE}: no payment is redeemed twice, at any age`, async (t) => {
        const { clock, replica } = setUp(t);
        const [one, other] = [replica(first), replica(second)];
        await one.start();
        clock.now += 20 * MINUTE;
        const time = clock.now;
        assert.equal(await outcome(one.redeem(...claimed(minedAt(time)))), 'done');
        for (let age = 0; age < 40; age++) {
          clock.now = time + age * MINUTE;
          // What another replica takes for young enough it asks for.
          const seen = clock.now + second - time;
          if (seen > LIFE) continue;
          assert.equal(await outcome(other.redeem(...claimed(minedAt(time)))), 'Payment already used', `${age}`);
        }
      });
});

describe('an engine that cannot be trusted with payments', () => {
  it('keeps the plugin from starting', async (t) => {
    const { engine, replica } = setUp(t);
    engine.doubts = ['set this', 'set that'];
    await assert.rejects(replica().start(), new StateUnavailable('set this; set that'));
  });

  it('sells nothing from the moment on at which it cannot', async (t) => {
    const { clock, engine, started } = setUp(t);
    const redemptions = await started();
    engine.doubts = ['set this'];
    const refused = redemptions.redeem(...claimed(minedAt(clock.now)));
    await assert.rejects(refused, new StateUnavailable('set this'));
    engine.doubts = [];
    assert.equal(await outcome(redemptions.redeem(...claimed(minedAt(clock.now)))), 'done');
  });
});

it('a payment of the second in which the ledger begins is refused, and the operator is told both times', async (t) => {
  const { clock, started } = setUp(t);
  clock.now += 310;
  const redemptions = await started();
  const reason = `mined at 2023-11-14T22:13:20.000Z, before the ledger of redeemed payments began at 2023-11-14T22:13:20.310Z`;
  await assert.rejects(redemptions.redeem(...claimed(minedAt(START))), (error) => {
    assert.ok(isRefusal(error));
    // A fault is a line in the log at the level `warn`.
    assert.deepEqual([error.message, error.reason, error.fault], ['Payment too old', reason, true]);
    return true;
  });
});

describe('a ledger that was emptied', () => {
  it('begins anew when somebody is told what to pay, so that what is paid then counts', async (t) => {
    const { clock, memory, started } = setUp(t);
    const redemptions = await started();
    await memory.compareAndSet('ledger', await memory.get('ledger'), undefined);
    clock.now += 5000;
    redemptions.look();
    await new Promise((done) => setImmediate(done));
    const paid = minedAt(clock.now + 1);
    clock.now += 5000;
    assert.equal(await outcome(redemptions.redeem(...claimed(minedAt(START + 1)))), 'Payment too old');
    assert.equal(await outcome(redemptions.redeem(ticketOf('0x02'), paid, () => false)), 'done');
  });

  it('between the look at it and the redemption sells nothing', async (t) => {
    const { clock, memory, started } = setUp(t);
    const redemptions = await started();
    const paid = minedAt(clock.now);
    const emptied = async () => {
      for (const key of ['ledger', '0x01']) await memory.compareAndSet(key, await memory.get(key), undefined);
      clock.now += 1;
      return paid();
    };
    assert.equal(await outcome(redemptions.redeem(...claimed(emptied))), 'Payment too old');
    assert.equal(await outcome(redemptions.redeem(...claimed(paid))), 'Payment too old');
  });
});

it('a request that ends while its payment is redeemed gives it back', async (t) => {
  const { clock, engine, started } = setUp(t);
  const redemptions = await started();
  const paid = minedAt(clock.now);
  engine.commands = 0;
  // To list, to hold, to look at the ledger, to redeem.
  const isOver = () => engine.commands === 7;
  assert.equal(await outcome(redemptions.redeem(...claimed(paid, isOver))), UNAVAILABLE);
  assert.equal(await outcome(redemptions.redeem(...claimed(paid))), 'done');
});

it('a check that fails gives the payment back with its own words', async (t) => {
  const { clock, started } = setUp(t);
  const redemptions = await started();
  const fails = () => Promise.reject(new Refusal(401, 'Payment not found'));
  assert.equal(await outcome(redemptions.redeem(...claimed(fails))), 'Payment not found');
  assert.equal(await outcome(redemptions.redeem(...claimed(minedAt(clock.now)))), 'done');
});
