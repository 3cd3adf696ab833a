/** A payment is held by one request and redeemed once, whatever the engine loses. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import fc from 'fast-check';
import type { Ticket } from '../../../builtins/shared/payment-mark.ts';
import type { Payments } from '../../../builtins/shared/payments.ts';
import { MemoryArea, type StateArea, StateUnavailable, StateUnreadable } from '../../../plugins-sdk/state.ts';
import { paymentsOn, steps, ticketOf } from '../../support/payments.ts';

const START = 1_700_000_000_000;
const LIFE = 7_200_000;

function setUp(capacity = 1000) {
  const clock = { now: START };
  const area = new MemoryArea({ now: () => clock.now, capacity });
  return { clock, area, payments: paymentsOn(area) };
}

function name(n: number): string {
  return `0x${n.toString(16).padStart(64, '0')}:0x${'ab'.repeat(20)}`;
}

/** A request that holds a payment. */
async function held(payments: Payments, payment = name(1), life = LIFE) {
  const ticket = ticketOf(payment);
  const request = steps(payments, ticket, life);
  assert.equal(await request.hold(), true);
  return { ...request, ticket };
}

async function redeemed(payments: Payments, payment = name(1), life = LIFE) {
  const request = await held(payments, payment, life);
  assert.equal(await request.redeem(), true);
  return request;
}

async function isFree(payments: Payments, payment = name(1)): Promise<boolean> {
  const ticket = ticketOf(payment);
  const free = (await payments.hold(ticket, LIFE))?.by === ticket.token;
  if (free) await payments.end(ticket);
  return free;
}

describe('a hold', () => {
  it('is given to one of two racing requests, whatever the case of the hex', async () => {
    const { payments } = setUp();
    await held(payments, `0x${'abcdef01'.repeat(8)}`);
    assert.equal(await isFree(payments, `0X${'ABCDEF01'.repeat(8)}`), false);
    assert.equal(await isFree(payments), true);
  });

  it('on a payment that may have been taken says still since when, lest the chain is searched too late', async () => {
    const { payments } = setUp();
    const [first, second] = [ticketOf(name(1), { since: 1 }), ticketOf(name(1), { since: 2 })];
    await payments.hold(first, LIFE);
    await payments.end(first, { outcome: { state: 'unknown', by: undefined }, life: LIFE });
    const { by, since } = (await payments.hold(second, LIFE)) ?? assert.fail();
    assert.deepEqual([by, since], [second.token, 1]);
  });

  it('on a payment in doubt lists it once, however often it is sent, until its end is known', async () => {
    const { area, payments } = setUp();
    const names = async () => (await payments.index.open()).length;
    const end = async (state: 'unknown' | 'settled') => {
      const ticket = ticketOf(name(1));
      assert.equal((await payments.hold(ticket, LIFE))?.by, ticket.token);
      await payments.end(ticket, { outcome: { state, by: undefined }, life: LIFE });
    };
    for (let i = 0; i < 10; i++) {
      await end('unknown');
      assert.equal(await names(), 1);
    }
    const ticket = ticketOf(name(1));
    await payments.hold(ticket, LIFE);
    await payments.end(ticket);
    assert.deepEqual([(await payments.open())[0]?.state, await names()], ['unknown', 1]);
    await end('settled');
    assert.equal(await names(), 0);
    // It, and what finds it by its transaction.
    assert.equal(area.size, 2);
  });

  it('whose write is done late, without an answer, is listed for operators', async () => {
    const { area, clock } = setUp();
    let doLate: () => Promise<unknown> = async () => undefined;
    const slow = new MemoryArea({ now: () => clock.now });
    slow.get = area.get.bind(area);
    slow.compareAndSet = async (key, ...write) => {
      if (key.startsWith('open ')) return area.compareAndSet(key, ...write);
      slow.compareAndSet = area.compareAndSet.bind(area);
      doLate = () => area.compareAndSet(key, ...write);
      throw new StateUnavailable('no answer in time');
    };
    const payments = paymentsOn(slow, { available: () => true, doubts: () => [] });
    await assert.rejects(payments.hold(ticketOf(name(1)), LIFE), { message: 'no answer in time' });
    await doLate();
    const open = (await payments.open()).map(({ payment, state }) => [payment, state]);
    assert.deepEqual(open, [[name(1), 'held']]);
  });

  it('is refused where 1,000 payments of its list have no known end, until the oldest has ended', async () => {
    const { clock, payments } = setUp(2000);
    const inOneList = (n: number) => ({ ...ticketOf(name(n)), token: `0x00${n}` });
    await payments.hold(inOneList(0), LIFE);
    for (let n = 1; n < 1000; n++) await payments.hold(inOneList(n), 2 * LIFE);
    const open = async () => (await payments.open()).map(({ payment }) => payment);
    const listed = await open();
    const message = 'no room for another payment without a known end';
    await assert.rejects(payments.hold(inOneList(1000), LIFE), { message });
    assert.deepEqual(await open(), listed);
    clock.now += LIFE;
    await payments.hold(inOneList(1000), LIFE);
    assert.deepEqual(await open(), [...listed.slice(1), name(1000)]);
  });

  it('is found by its nonce among the last 20 that have it, since payers choose their nonces', async () => {
    const { payments } = setUp();
    for (let n = 0; n <= 20; n++) {
      const ticket = ticketOf(name(n), { nonce: '0xaa' });
      await payments.hold(ticket, LIFE);
      await payments.end(ticket, { outcome: { state: 'settled' }, life: LIFE });
    }
    const last = Array.from({ length: 20 }, (_, n) => name(n + 1));
    assert.deepEqual(await payments.index.names('0xAA'), last);
  });

  it('becomes a redemption, and no other ticket does', async () => {
    const { payments } = setUp();
    const stranger = steps(payments, ticketOf(name(1)), LIFE);
    assert.equal(await stranger.redeem(), false);
    const request = await held(payments);
    assert.equal(await stranger.redeem(), false);
    assert.equal(await request.redeem(), true);
    assert.equal(await isFree(payments), false);
  });

  it('that was released leaves nothing behind, any number of times', async () => {
    const { payments, area } = setUp();
    for (let i = 0; i < 10; i++) {
      await (await held(payments)).release();
      assert.equal(area.size, 0);
    }
  });

  it('that was released leaves what was given back before remembered as long as it was', async () => {
    const { area, clock, payments } = setUp();
    assert.equal(await (await redeemed(payments)).giveBack(), true);
    const before = await area.get(name(1));
    assert.equal(await isFree(payments), true);
    clock.now += LIFE - 1;
    assert.equal(await area.get(name(1)), before);
  });

  it('is refused, and nothing is overwritten, where something stands that is no payment', async () => {
    for (const garbage of ['garbage', '', '{}', '{"state":"held"}', '{"state":"held","refunds":"x"}']) {
      const { area, payments } = setUp();
      await area.compareAndSet(name(1), undefined, garbage);
      const unreadable = new StateUnreadable(`payment ${name(1)}`);
      await assert.rejects(payments.hold(ticketOf(name(1)), LIFE), unreadable);
      assert.equal(await area.get(name(1)), garbage);
    }
  });

  it('is not released by another request', async () => {
    const { payments } = setUp();
    await held(payments);
    await payments.end(ticketOf(name(1)));
    assert.equal(await isFree(payments), false);
  });

  it('of a request that died is listed, and ends with its life: another takes it, and the first one gets nothing', async () => {
    const { payments, clock } = setUp();
    const first = await held(payments);
    clock.now += LIFE - 1;
    assert.deepEqual([(await payments.open()).map(({ state }) => state), await isFree(payments)], [['held'], false]);
    clock.now += 1;
    assert.deepEqual(await payments.open(), []);
    const second = await held(payments);
    assert.equal(await first.redeem(), false);
    await first.release();
    assert.equal(await second.redeem(), true);
    assert.equal(await first.redeem(), false);
    assert.equal(await first.giveBack(), false);
    assert.equal(await isFree(payments), false);
  });
});

describe('a redemption', () => {
  it('is listed until it ends, and then remembered as long as it was told to', async () => {
    const { payments, clock } = setUp();
    const request = await redeemed(payments);
    clock.now += 29 * 86_400_000;
    const open = (await payments.open()).map(({ state, payment }) => [state, payment]);
    assert.deepEqual(open, [['redeemed', name(1)]]);
    assert.equal(await request.answer(), true);
    assert.deepEqual(await payments.open(), []);
    clock.now += LIFE - 1;
    assert.equal(await isFree(payments), false);
    clock.now += 1;
    assert.equal(await isFree(payments), true);
  });

  it('is given back once, by its own ticket', async () => {
    const { payments } = setUp();
    const request = await redeemed(payments);
    assert.equal(await steps(payments, ticketOf(name(1)), LIFE).giveBack(), false);
    // Once more changes nothing: the answer to the first may have been lost.
    for (let tries = 0; tries < 2; tries++) assert.equal(await request.giveBack(), true);
    assert.equal(await isFree(payments), true);
  });

  it('is given back three times, and the fourth leaves it used; what does not count is not counted', async () => {
    const { payments, clock } = setUp();
    for (let i = 0; i < 3; i++) {
      assert.equal(await (await redeemed(payments)).giveBack(false), true);
      assert.equal(await (await redeemed(payments)).giveBack(), true);
      await (await held(payments)).release();
      await (await redeemed(payments)).release();
    }
    assert.equal(await (await redeemed(payments)).giveBack(false), true);
    const last = await redeemed(payments);
    assert.deepEqual([await last.giveBack(), await last.giveBack()], [false, false]);
    assert.equal(await isFree(payments), false);
    clock.now += LIFE;
    assert.equal(await (await redeemed(payments)).giveBack(), true);
  });

  it('is found by its transaction, together with others of it, while it is remembered', async () => {
    const { payments, clock } = setUp();
    const id = `0x${'ab'.repeat(32)}`;
    for (const payer of ['one', 'other']) {
      const ticket = ticketOf(`${id}:${payer}`, { transaction: id, payer });
      await payments.hold(ticket, LIFE);
      await payments.advance(ticket, 'redeemed', LIFE);
      await steps(payments, ticket, LIFE).answer();
    }
    const found = async () => (await payments.find(id.toUpperCase())).map(({ payer, state }) => [payer, state]);
    assert.deepEqual(await found(), [
      ['one', 'answered'],
      ['other', 'answered'],
    ]);
    clock.now += LIFE;
    assert.deepEqual(await found(), []);
  });

  it('is found by its transaction while it is remembered, though another of it ends later and is forgotten before', async () => {
    const { payments, clock } = setUp();
    const id = `0x${'ab'.repeat(32)}`;
    for (const [payer, life] of [
      ['one', 2 * LIFE],
      ['other', LIFE],
    ] as const) {
      const ticket = ticketOf(`${id}:${payer}`, { transaction: id, payer });
      await payments.hold(ticket, life);
      await payments.advance(ticket, 'redeemed', life);
      await steps(payments, ticket, life).answer();
    }
    clock.now += LIFE;
    const [found, ...others] = await payments.find(id);
    assert.deepEqual([found?.payer, others], ['one', []]);
  });

  it('leaves nothing behind once it is not remembered any more: many are sold, each is found, and others have room', async () => {
    const { payments, clock } = setUp(10);
    for (let n = 0; n < 300; n++) {
      assert.equal(await (await redeemed(payments, name(n))).answer(), true);
      assert.deepEqual(await payments.index.names(name(n)), [name(n)]);
      clock.now += LIFE;
    }
    await Promise.all([1, 2, 3, 4].map((n) => held(payments, name(n))));
  });

  it('is found as long as its last end is remembered, by whomever it was ended', async () => {
    const { payments, clock } = setUp();
    const found = async () => (await payments.find(name(1))).map(({ state }) => state);
    await (await redeemed(payments)).giveBack();
    clock.now += LIFE / 2;
    await (await redeemed(payments)).answer();
    clock.now += LIFE - 1;
    const [answered = assert.fail()] = await payments.find(name(1));
    assert.equal(await payments.replace(answered, { state: 'released', by: undefined }, 2 * LIFE), true);
    clock.now += 2 * LIFE - 1;
    assert.deepEqual(await found(), ['released']);
    clock.now += 1;
    assert.deepEqual([await found(), await payments.index.names(name(1))], [[], []]);
  });
});

describe('an answer of the state that is lost', () => {
  /** A request whose n-th swap from now on fails, once it was done or before. */
  function failing(t: TestContext, isDone: boolean) {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { area } = setUp();
    const cut = { in: Number.POSITIVE_INFINITY };
    const compareAndSet: StateArea['compareAndSet'] = async (...args) => {
      cut.in -= 1;
      if (cut.in !== 0) return area.compareAndSet(...args);
      if (isDone) await area.compareAndSet(...args);
      throw new StateUnavailable('cut');
    };
    const payments = paymentsOn({
      get: (key) => area.get(key),
      compareAndSet,
      takeTokens: area.takeTokens.bind(area),
    });
    const later = async () => {
      t.mock.timers.tick(1000);
      for (let turn = 0; turn < 20; turn++) await new Promise((done) => setImmediate(done));
    };
    return { payments, cut, later };
  }

  for (const isDone of [true, false]) {
    const when = isDone ? 'after it was done' : 'before it was done';
    for (const at of [1, 2])
      it(`of a hold, ${at}, ${when}: the payment is free`, async (t) => {
        const { payments, cut, later } = failing(t, isDone);
        cut.in = at;
        await assert.rejects(payments.hold(ticketOf(name(1)), LIFE), { message: 'cut' });
        await later();
        assert.deepEqual(await payments.open(), []);
        assert.equal(await isFree(payments), true);
      });

    it(`of a redemption, ${when}: a release undoes it`, async (t) => {
      const { payments, cut } = failing(t, isDone);
      const request = await held(payments);
      cut.in = 1;
      await request.redeem().catch(() => undefined);
      await request.release();
      assert.equal(await isFree(payments), true);
    });

    for (const at of [1, 2, 3])
      it(`of a return, ${at}, ${when}: it is counted once, a second later`, async (t) => {
        const { payments, cut, later } = failing(t, isDone);
        const request = await redeemed(payments);
        cut.in = at;
        await request.giveBack();
        await later();
        assert.deepEqual(await payments.open(), []);
        const counts = [];
        for (let i = 0; i < 3; i++) counts.push(await (await redeemed(payments)).giveBack());
        assert.deepEqual(counts, [true, true, false]);
      });
  }

  it('of a release of what is redeemed: the redemption that arrives later finds nothing', async () => {
    const { payments } = setUp();
    const request = await held(payments);
    await request.release();
    assert.equal(await request.redeem(), false);
    assert.equal(await isFree(payments), true);
  });
});

it('one of 64 racing requests gets a payment, 100 times, over two instances', async () => {
  const { area } = setUp();
  const replicas = [paymentsOn(area), paymentsOn(area)] as const;
  for (let round = 0; round < 100; round++) {
    const races = Array.from({ length: 64 }, async (_, index) => {
      const request = steps(replicas[index % 2 === 0 ? 0 : 1], ticketOf(name(round)), LIFE);
      return (await request.hold().catch(() => false)) && request.redeem();
    });
    assert.equal((await Promise.all(races)).filter(Boolean).length, 1);
  }
});

it('does what a plain list of payments does', async () => {
  interface Row {
    state: 'free' | 'held' | 'redeemed';
    refunds: number;
    ticket: Ticket | undefined;
  }
  const step = fc.record({
    kind: fc.constantFrom('hold', 'hold', 'redeem', 'release', 'refund', 'give back'),
    n: fc.integer({ min: 0, max: 3 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (list) => {
      const { payments } = setUp();
      const rows = [0, 1, 2, 3].map((): Row => ({ state: 'free', refunds: 0, ticket: undefined }));
      for (const { kind, n } of list) {
        const row = rows[n] ?? assert.fail();
        const ticket = kind === 'hold' ? ticketOf(name(n)) : (row.ticket ?? ticketOf(name(n)));
        const request = steps(payments, ticket, LIFE);
        const isTaken = row.state !== 'free';
        if (kind === 'hold') {
          assert.equal(await request.hold(), !isTaken);
          if (!isTaken) Object.assign(row, { state: 'held', ticket });
        } else if (kind === 'redeem') {
          assert.equal(await request.redeem(), isTaken);
          if (isTaken) row.state = 'redeemed';
        } else if (kind === 'release') {
          await request.release();
          row.state = 'free';
        } else if (isTaken) {
          const counts = kind === 'refund';
          const may = !counts || row.refunds < 3;
          assert.equal(await request.giveBack(counts), may);
          if (may) Object.assign(row, { state: 'free', refunds: row.refunds + (counts ? 1 : 0) });
        }
      }
      const taken = rows.filter(({ state }) => state !== 'free').length;
      assert.equal((await payments.open()).length <= taken, true);
    }),
    { numRuns: 300 },
  );
});
