/** A payment is reserved by one request and redeemed once, whatever the engine loses. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Payments, type Ticket, ticketFor } from '../../../builtins/shared/payments.ts';
import { MemoryArea, type StateArea, StateUnavailable } from '../../../plugins-sdk/state.ts';

const START = 1_700_000_000_000;
const LEASE = 40;
const LIFE = 900_000;

function setUp() {
  const clock = { now: START };
  const area = new MemoryArea({ now: () => clock.now });
  return { clock, area, payments: new Payments(area) };
}

function name(n: number): string {
  return `0x${n.toString(16).padStart(64, '0')}:0x${'ab'.repeat(20)}`;
}

async function held(payments: Payments, payment = name(1)): Promise<Ticket> {
  const ticket = ticketFor(payment);
  assert.equal(await payments.reserve(ticket, LEASE), undefined);
  return ticket;
}

async function redeemed(payments: Payments, payment = name(1), life = LIFE): Promise<Ticket> {
  const ticket = await held(payments, payment);
  assert.equal(await payments.confirm(ticket, life), true);
  return ticket;
}

async function isFree(payments: Payments, payment = name(1)): Promise<boolean> {
  const ticket = ticketFor(payment);
  const free = (await payments.reserve(ticket, LEASE)) === undefined;
  await payments.release(ticket);
  return free;
}

describe('a reservation', () => {
  it('is given to one of two racing requests, whatever the case of the hex', async () => {
    const { payments } = setUp();
    await held(payments, `0x${'abcdef01'.repeat(8)}`);
    assert.equal(await isFree(payments, `0X${'ABCDEF01'.repeat(8)}`), false);
    assert.equal(await isFree(payments), true);
  });

  it('becomes a redemption once, and no other ticket does', async () => {
    const { payments } = setUp();
    assert.equal(await payments.confirm(ticketFor(name(1)), LIFE), false);
    const ticket = await held(payments);
    assert.equal(await payments.confirm(ticketFor(name(1)), LIFE), false);
    assert.equal(await payments.confirm(ticket, LIFE), true);
    assert.equal(await isFree(payments), false);
  });

  it('that was released leaves nothing behind, any number of times', async () => {
    const { payments, area } = setUp();
    for (let i = 0; i < 10; i++) {
      await payments.release(await held(payments));
      assert.equal(area.size, 0);
    }
  });

  it('is refused, and nothing is overwritten, where something stands that is no payment', async () => {
    const { area, payments } = setUp();
    await area.compareAndSet(name(1), undefined, 'garbage');
    const message = `what stands under payment ${name(1)} in settings.state cannot be read`;
    await assert.rejects(payments.reserve(ticketFor(name(1)), LEASE), { name: 'Error', message });
    assert.equal(await area.get(name(1)), 'garbage');
  });

  it('is not released by another request', async () => {
    const { payments } = setUp();
    await held(payments);
    await payments.release(ticketFor(name(1)));
    assert.equal(await isFree(payments), false);
  });

  it('ends when its owner died: another takes it over, and the first one, should it live, gets nothing', async () => {
    const { payments, clock } = setUp();
    const first = await held(payments);
    clock.now += LEASE;
    const second = await held(payments);
    assert.equal(await payments.confirm(first, LIFE), false);
    await payments.release(first);
    assert.equal(await payments.confirm(second, LIFE), true);
    assert.equal(await payments.confirm(first, LIFE), false);
    assert.equal(await payments.refund(first, LIFE, true), false);
    assert.equal(await isFree(payments), false);
  });
});

describe('a redemption', () => {
  it('lasts as long as it was told to, not as its reservation', async () => {
    const { payments, clock } = setUp();
    await redeemed(payments);
    clock.now += LIFE - 1;
    assert.equal(await isFree(payments), false);
    clock.now += 1;
    assert.equal(await isFree(payments), true);
  });

  it('is given back once, by its own ticket', async () => {
    const { payments } = setUp();
    const ticket = await redeemed(payments);
    assert.equal(await payments.refund(ticketFor(name(1)), LIFE, false), false);
    // Once more changes nothing: the answer to the first may have been lost.
    for (let tries = 0; tries < 2; tries++) assert.equal(await payments.refund(ticket, LIFE, false), true);
    assert.equal(await isFree(payments), true);
  });

  it('is refunded three times, and the fourth leaves it used; what does not count is not counted', async () => {
    const { payments, clock } = setUp();
    for (let i = 0; i < 3; i++) {
      assert.equal(await payments.refund(await redeemed(payments), LIFE, false), true);
      assert.equal(await payments.refund(await redeemed(payments), LIFE, true), true);
      await payments.release(await held(payments));
    }
    assert.equal(await payments.refund(await redeemed(payments), LIFE, false), true);
    const last = await redeemed(payments);
    assert.deepEqual(
      [await payments.refund(last, LIFE, true), await payments.refund(last, LIFE, true)],
      [false, false],
    );
    assert.equal(await isFree(payments), false);
    clock.now += LIFE;
    assert.equal(await payments.refund(await redeemed(payments), LIFE, true), true);
  });

  for (const text of ['', 'garbage', 'NaN x', '-9 x', '0.5 x', '1', '2  x'])
    it(`is not refunded while the count is ${JSON.stringify(text)}`, async () => {
      const { area, payments } = setUp();
      const key = `refunds ${name(1)}`;
      await area.compareAndSet(key, undefined, text);
      const ticket = await redeemed(payments);
      await assert.rejects(payments.refund(ticket, LIFE, true), {
        message: `what stands under ${key} in settings.state cannot be read`,
      });
      assert.deepEqual([await area.get(key), await isFree(payments)], [text, false]);
    });

  it('counts refunds for the longest time that any of them was told', async () => {
    const { payments, clock } = setUp();
    await payments.refund(await redeemed(payments), 1000, true);
    for (let i = 0; i < 2; i++) await payments.refund(await redeemed(payments), 10, true);
    clock.now += 999;
    assert.equal(await payments.refund(await redeemed(payments), LIFE, true), false);
  });
});

describe('an answer of the state that is lost', () => {
  /** An area whose n-th swap fails, once it was done or before. */
  function failing(area: StateArea, at: number, isDone: boolean): StateArea {
    let swaps = 0;
    const compareAndSet: StateArea['compareAndSet'] = async (...args) => {
      swaps += 1;
      if (swaps !== at) return area.compareAndSet(...args);
      if (isDone) await area.compareAndSet(...args);
      throw new StateUnavailable('cut');
    };
    return { get: (key) => area.get(key), compareAndSet, takeTokens: area.takeTokens.bind(area) };
  }

  for (const isDone of [true, false]) {
    const when = isDone ? 'after it was done' : 'before it was done';
    it(`of a reservation, ${when}: a release leaves the payment free`, async () => {
      const { area } = setUp();
      const payments = new Payments(failing(area, 1, isDone));
      const ticket = ticketFor(name(1));
      await assert.rejects(payments.reserve(ticket, LEASE), StateUnavailable);
      await payments.release(ticket);
      assert.equal(await isFree(payments), true);
    });

    it(`of a confirmation, ${when}: a release undoes it, a second confirmation keeps it`, async () => {
      const { area } = setUp();
      const payments = new Payments(failing(area, 2, isDone));
      const ticket = await held(payments);
      await assert.rejects(payments.confirm(ticket, LIFE), StateUnavailable);
      assert.equal(await payments.confirm(ticket, LIFE), true);
      await payments.release(ticket);
      assert.equal(await isFree(payments), true);
    });

    it(`of a refund, ${when}: the next try counts it once`, async () => {
      for (const lost of [3, 4]) {
        const { area } = setUp();
        const payments = new Payments(failing(area, lost, isDone));
        const ticket = await redeemed(payments);
        await assert.rejects(payments.refund(ticket, LIFE, true), StateUnavailable);
        await payments.refund(ticket, LIFE, true);
        const counts = [];
        for (let i = 0; i < 3; i++) counts.push(await payments.refund(await redeemed(payments), LIFE, true));
        assert.deepEqual(counts, [true, true, false]);
      }
    });
  }

  it('of a release of what is confirmed: the confirmation that arrives later finds nothing', async () => {
    const { payments } = setUp();
    const ticket = await held(payments);
    await payments.release(ticket);
    assert.equal(await payments.confirm(ticket, LIFE), false);
    assert.equal(await isFree(payments), true);
  });
});

it('one of 64 racing requests gets a payment, 400 times, over two instances', async () => {
  const { area } = setUp();
  const replicas = [new Payments(area), new Payments(area)] as const;
  for (let round = 0; round < 400; round++) {
    const races = Array.from({ length: 64 }, async (_, index) => {
      const payments = replicas[index % 2 === 0 ? 0 : 1];
      const ticket = ticketFor(name(round));
      return (await payments.reserve(ticket, LEASE)) === undefined && payments.confirm(ticket, LIFE);
    });
    assert.equal((await Promise.all(races)).filter(Boolean).length, 1);
  }
});

it('does what a plain list of payments does', async () => {
  interface Row {
    state: 'free' | 'reserved' | 'redeemed';
    until: number;
    refunds: number;
    ticket: Ticket | undefined;
  }
  const step = fc.record({
    kind: fc.constantFrom('reserve', 'reserve', 'confirm', 'release', 'refund', 'give back'),
    n: fc.integer({ min: 0, max: 3 }),
    wait: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: LEASE })),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { payments, clock } = setUp();
      const rows = [0, 1, 2, 3].map((): Row => ({ state: 'free', until: 0, refunds: 0, ticket: undefined }));
      for (const { kind, n, wait } of steps) {
        clock.now += wait;
        const row = rows[n] ?? assert.fail();
        if (clock.now >= row.until) row.state = 'free';
        const own = row.ticket ?? ticketFor(name(n));
        if (kind === 'reserve') {
          const ticket = ticketFor(name(n));
          const standing = { free: undefined, reserved: 'held', redeemed: 'redeemed' };
          assert.equal(await payments.reserve(ticket, LEASE), standing[row.state]);
          if (row.state === 'free') Object.assign(row, { state: 'reserved', until: clock.now + LEASE, ticket });
        } else if (kind === 'confirm') {
          const before = row.state;
          assert.equal(await payments.confirm(own, LIFE), before !== 'free');
          if (before === 'reserved') Object.assign(row, { state: 'redeemed', until: clock.now + LIFE });
        } else if (kind === 'release') {
          await payments.release(own);
          row.state = 'free';
        } else {
          const counts = kind === 'refund';
          const may = !counts || row.refunds < 3;
          if (row.state === 'free' && counts) continue;
          assert.equal(await payments.refund(own, LIFE, counts), may);
          if (may) Object.assign(row, { state: 'free', refunds: row.refunds + (counts ? 1 : 0) });
        }
      }
    }),
    { numRuns: 300 },
  );
});
