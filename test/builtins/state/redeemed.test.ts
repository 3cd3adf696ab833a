import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { RedeemedPayments } from '../../../builtins/auth-x402/redeemed.ts';

const START = 1_700_000_000_000;
const LIVE = START + 900_000;

function setUp(capacity?: number) {
  const clock = { now: START };
  const now = () => clock.now;
  return { clock, payments: new RedeemedPayments(capacity === undefined ? { now } : { capacity, now }) };
}

function hash(n: number): string {
  return `0x${n.toString(16).padStart(64, '0')}`;
}

function redeem(payments: RedeemedPayments, txHash: string, liveUntil = LIVE): boolean {
  return payments.reserve(txHash, liveUntil) === 'reserved' && payments.confirm(txHash, liveUntil);
}

describe('a reservation', () => {
  it('is given to one of two racing requests', () => {
    const { payments } = setUp();
    assert.deepEqual([payments.reserve(hash(1), LIVE), payments.reserve(hash(1), LIVE)], ['reserved', 'used']);
  });

  it('is for one transaction', () => {
    const { payments } = setUp();
    assert.deepEqual([payments.reserve(hash(1), LIVE), payments.reserve(hash(2), LIVE)], ['reserved', 'reserved']);
  });

  it('takes a hash in upper case for the same', () => {
    const { payments } = setUp();
    const lower = `0x${'abcdef01'.repeat(8)}`;
    const upper = `0X${'ABCDEF01'.repeat(8)}`;
    payments.reserve(upper, LIVE);
    assert.equal(payments.reserve(lower, LIVE), 'used');
    assert.equal(payments.confirm(lower, LIVE), true);
    assert.equal(payments.refund(upper, true), true);
    assert.equal(payments.reserve(lower, LIVE), 'reserved');
    assert.equal(payments.release(upper), true);
  });

  it('becomes a redemption once', () => {
    const { payments } = setUp();
    payments.reserve(hash(1), LIVE);
    assert.deepEqual([payments.confirm(hash(1), LIVE), payments.confirm(hash(1), LIVE)], [true, false]);
    assert.equal(payments.reserve(hash(1), LIVE), 'used');
  });

  it('is needed for a redemption', () => {
    const { payments } = setUp();
    assert.equal(payments.confirm(hash(1), LIVE), false);
    assert.equal(payments.size, 0);
  });

  it('that was released leaves nothing behind, any number of times', () => {
    const { payments } = setUp();
    for (let i = 0; i < 10; i++) {
      assert.equal(payments.reserve(hash(1), LIVE), 'reserved');
      assert.equal(payments.release(hash(1)), true);
      assert.equal(payments.size, 0);
    }
    assert.equal(payments.release(hash(1)), false);
  });

  it('that has ended confirms nothing, and of two that overlap so one becomes a redemption', () => {
    const { payments, clock } = setUp();
    payments.reserve(hash(1), START + 10);
    clock.now = START + 11;
    assert.equal(payments.confirm(hash(1), LIVE), false);
    assert.equal(payments.reserve(hash(1), LIVE), 'reserved');
    assert.deepEqual([payments.confirm(hash(1), LIVE), payments.confirm(hash(1), LIVE)], [true, false]);
  });
});

describe('a redemption', () => {
  it('cannot be released as a failed check can', () => {
    const { payments } = setUp();
    redeem(payments, hash(1));
    assert.equal(payments.release(hash(1)), false);
    assert.equal(payments.reserve(hash(1), LIVE), 'used');
  });

  it('is refunded three times, and the fourth leaves it used', () => {
    const { payments } = setUp();
    for (let i = 0; i < 3; i++) {
      assert.equal(redeem(payments, hash(1)), true);
      assert.equal(payments.refund(hash(1), true), true);
    }
    assert.equal(redeem(payments, hash(1)), true);
    assert.equal(payments.refund(hash(1), true), false);
    assert.equal(payments.refund(hash(1), true), false);
    assert.equal(payments.reserve(hash(1), LIVE), 'used');
  });

  it('is refunded once for each time it is redeemed', () => {
    const { payments } = setUp();
    redeem(payments, hash(1));
    assert.deepEqual([payments.refund(hash(1), true), payments.refund(hash(1), true)], [true, false]);
    for (let i = 0; i < 2; i++) {
      redeem(payments, hash(1));
      assert.equal(payments.refund(hash(1), true), true);
    }
    redeem(payments, hash(1));
    assert.equal(payments.refund(hash(1), true), false);
  });

  it('keeps its count of refunds through checks that fail, which do not count', () => {
    const { payments } = setUp();
    for (let i = 0; i < 3; i++) {
      redeem(payments, hash(1));
      payments.refund(hash(1), true);
      for (let failed = 0; failed < 5; failed++) {
        assert.equal(payments.reserve(hash(1), LIVE), 'reserved');
        assert.equal(payments.reserve(hash(1), LIVE), 'used');
        assert.equal(payments.release(hash(1)), true);
        assert.equal(payments.release(hash(1)), false);
        assert.equal(payments.size, 1);
      }
    }
    redeem(payments, hash(1));
    assert.equal(payments.refund(hash(1), true), false);
  });

  it('is given back any number of times where that does not count, to one request at a time', () => {
    const { payments } = setUp();
    for (let i = 0; i < 10; i++) {
      assert.equal(redeem(payments, hash(1)), true);
      assert.equal(payments.reserve(hash(1), LIVE), 'used');
      assert.deepEqual([payments.refund(hash(1), false), payments.refund(hash(1), false)], [true, false]);
      assert.equal(payments.size, 0);
    }
  });

  it('keeps its count of refunds through those that do not count, before and after the third', () => {
    const { payments } = setUp();
    for (let i = 0; i < 3; i++) {
      for (const counts of [false, true, false]) {
        assert.equal(redeem(payments, hash(1)), true);
        assert.equal(payments.refund(hash(1), counts), true);
      }
    }
    redeem(payments, hash(1));
    assert.equal(payments.refund(hash(1), true), false);
    assert.equal(payments.refund(hash(1), false), true);
    redeem(payments, hash(1));
    assert.equal(payments.refund(hash(1), true), false);
    assert.equal(payments.reserve(hash(1), LIVE), 'used');
  });

  it('is no refund while it is only reserved, refunded or unknown', () => {
    const { payments } = setUp();
    assert.equal(payments.refund(hash(1), true), false);
    payments.reserve(hash(1), LIVE);
    assert.equal(payments.refund(hash(1), true), false);
    assert.equal(payments.reserve(hash(1), LIVE), 'used');
    payments.confirm(hash(1), LIVE);
    payments.refund(hash(1), true);
    assert.equal(payments.refund(hash(1), true), false);
  });
});

describe('the end of a transaction', () => {
  it('is after liveUntil, not at it', () => {
    const { payments, clock } = setUp();
    redeem(payments, hash(1));
    clock.now = LIVE;
    assert.equal(payments.reserve(hash(1), LIVE + 1), 'used');
    clock.now = LIVE + 1;
    assert.equal(payments.reserve(hash(1), LIVE + 1), 'reserved');
  });

  it('moves on with confirm', () => {
    const { payments, clock } = setUp();
    payments.reserve(hash(1), START + 10);
    payments.confirm(hash(1), LIVE);
    clock.now = LIVE;
    assert.equal(payments.reserve(hash(1), LIVE), 'used');
  });

  it('never moves back, not even through a refund and another reservation', () => {
    const { payments, clock } = setUp();
    payments.reserve(hash(1), LIVE);
    payments.confirm(hash(1), START + 10);
    payments.refund(hash(1), true);
    redeem(payments, hash(1), START + 20);
    clock.now = LIVE;
    assert.equal(payments.reserve(hash(1), LIVE), 'used');
  });

  it('ends the count of refunds, and not before', () => {
    const { payments, clock } = setUp();
    for (let i = 0; i < 3; i++) {
      redeem(payments, hash(1));
      payments.refund(hash(1), true);
    }
    clock.now = LIVE;
    redeem(payments, hash(1));
    assert.equal(payments.refund(hash(1), true), false);
    clock.now = LIVE + 1;
    assert.equal(redeem(payments, hash(1), LIVE + 1000), true);
    assert.equal(payments.refund(hash(1), true), true);
  });

  it('ends a redemption that has not been refunded', () => {
    const { payments, clock } = setUp();
    redeem(payments, hash(1));
    clock.now = LIVE + 1;
    assert.equal(payments.refund(hash(1), true), false);
  });

  it('comes later, never sooner, when the clock goes back', () => {
    const { payments, clock } = setUp();
    redeem(payments, hash(1));
    clock.now = 0;
    assert.equal(payments.reserve(hash(1), LIVE), 'used');
  });

  it('must be a number', () => {
    const { payments } = setUp();
    assert.throws(() => payments.reserve(hash(1), Number.NaN), new RangeError('expiresAt must be a number, not NaN'));
    assert.equal(payments.size, 0);
  });
});

describe('a full set', () => {
  it('refuses new transactions and forgets none', () => {
    const { payments } = setUp(2);
    redeem(payments, hash(1));
    payments.reserve(hash(2), LIVE);
    for (let i = 3; i < 1000; i++) {
      assert.equal(payments.reserve(hash(i), LIVE), 'full');
    }
    assert.deepEqual([payments.reserve(hash(1), LIVE), payments.reserve(hash(2), LIVE)], ['used', 'used']);
    assert.equal(payments.size, 2);
  });

  it('still confirms, releases and refunds, and reserves again what was refunded', () => {
    const { payments } = setUp(2);
    redeem(payments, hash(1));
    payments.reserve(hash(2), LIVE);
    assert.equal(payments.refund(hash(1), true), true);
    assert.equal(payments.reserve(hash(3), LIVE), 'full');
    assert.equal(payments.reserve(hash(1), LIVE), 'reserved');
    assert.equal(payments.confirm(hash(2), LIVE), true);
    assert.equal(payments.release(hash(1)), true);
  });

  it('has room as soon as one entry has ended, whichever it is', () => {
    const { payments, clock } = setUp(3);
    payments.reserve(hash(1), LIVE);
    payments.reserve(hash(2), START + 100);
    payments.reserve(hash(3), LIVE);
    clock.now = START + 100;
    assert.equal(payments.reserve(hash(4), LIVE), 'full');
    clock.now = START + 101;
    assert.equal(payments.reserve(hash(4), LIVE), 'reserved');
    assert.equal(payments.reserve(hash(5), LIVE), 'full');
    assert.deepEqual(
      [1, 3, 4].map((n) => payments.reserve(hash(n), LIVE)),
      ['used', 'used', 'used'],
    );
  });

  it('cannot be kept full by proofs that fail', () => {
    const { payments } = setUp(3);
    for (let i = 0; i < 10_000; i++) {
      assert.equal(payments.reserve(hash(i), LIVE), 'reserved');
      assert.equal(payments.release(hash(i)), true);
    }
    assert.equal(payments.size, 0);
  });

  it('has 100,000 transactions when nothing else is said', () => {
    const { payments } = setUp();
    for (let i = 0; i < 100_000; i++) {
      assert.equal(payments.reserve(hash(i), LIVE + (i % 1000)), 'reserved');
    }
    assert.equal(payments.reserve(hash(100_000), LIVE), 'full');
    assert.equal(payments.reserve(hash(0), LIVE), 'used');
  });
});

it('runs on the wall clock when it is given none', () => {
  const payments = new RedeemedPayments();
  assert.equal(payments.reserve(hash(1), Date.now() - 1), 'reserved');
  assert.equal(payments.confirm(hash(1), Date.now() + 60_000), false);
  assert.equal(redeem(payments, hash(2), Date.now() + 60_000), true);
});

it('answers as a plain list of payments does', () => {
  interface Row {
    state: string;
    refunds: number;
    until: number;
  }
  const kind = fc.constantFrom('reserve', 'reserve', 'confirm', 'release', 'refund', 'give back');
  const ms = fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 40 }));
  const step = fc.record({ kind, n: fc.integer({ min: 0, max: 7 }), ms, life: fc.integer({ min: 0, max: 200 }) });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(step, { maxLength: 200 }), (capacity, steps) => {
      const { payments, clock } = setUp(capacity);
      const rows = new Map<number, Row>();
      for (const { kind: action, n, ms: wait, life } of steps) {
        clock.now += wait;
        for (const [key, row] of rows) {
          if (clock.now > row.until) {
            rows.delete(key);
          }
        }
        const row = rows.get(n);
        const until = Math.max(clock.now + life, row?.until ?? 0);
        if (action === 'reserve') {
          const free = row === undefined ? rows.size < capacity : row.state === 'refunded';
          const refused = row === undefined ? 'full' : 'used';
          assert.equal(payments.reserve(hash(n), clock.now + life), free ? 'reserved' : refused);
          if (free) {
            rows.set(n, { state: 'reserved', refunds: row?.refunds ?? 0, until });
          }
        } else if (action === 'confirm') {
          assert.equal(payments.confirm(hash(n), clock.now + life), row?.state === 'reserved');
          if (row?.state === 'reserved') {
            Object.assign(row, { state: 'redeemed', until });
          }
        } else if (action === 'release') {
          assert.equal(payments.release(hash(n)), row?.state === 'reserved');
          if (row?.state === 'reserved') {
            row.state = 'refunded';
          }
          if (row?.state === 'refunded' && row.refunds === 0) {
            rows.delete(n);
          }
        } else {
          const counts = action === 'refund';
          const refundable = row?.state === 'redeemed' && (row.refunds < 3 || !counts);
          assert.equal(payments.refund(hash(n), counts), refundable);
          if (row !== undefined && refundable) {
            Object.assign(row, { state: 'refunded', refunds: row.refunds + (counts ? 1 : 0) });
            if (row.refunds === 0) rows.delete(n);
          }
        }
        assert.ok(payments.size <= capacity && payments.size >= rows.size);
      }
    }),
    { numRuns: 1000 },
  );
});
