/** A client gets the tokens of its bucket, also when the table is full. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type Taken, TokenBuckets, type TokenTake } from '../../lib/bounded/token-buckets.ts';

const ALLOWED: TokenTake = { granted: 1, retryAfter: 0 };

function refused(retryAfter: number): TokenTake {
  return { granted: 0, retryAfter };
}

/** Buckets whose outcomes say nothing of what is left. */
class BareBuckets extends TokenBuckets {
  override take(key: string): Taken {
    const { granted, retryAfter } = super.take(key);
    return { granted, retryAfter } as Taken;
  }
}

/** Buckets on a clock that the test sets. */
function setUp({ capacity, ...limit }: { max: number; window: number; capacity?: number }) {
  const clock = { now: 1_700_000_000_000 };
  return { clock, buckets: new BareBuckets(limit, capacity, () => clock.now) };
}

function takeMany(buckets: TokenBuckets, key: string, times: number): number {
  let allowed = 0;
  for (let i = 0; i < times; i++) allowed += buckets.take(key).granted;
  return allowed;
}

describe('one client', () => {
  it('gets tokens back continuously, max in a window', () => {
    const { buckets, clock } = setUp({ max: 3, window: 3000 });
    takeMany(buckets, 'a', 3);
    clock.now += 999;
    assert.deepEqual(buckets.take('a'), refused(1));
    clock.now += 1;
    assert.deepEqual([buckets.take('a'), buckets.take('a')], [ALLOWED, refused(1000)]);
    clock.now += 2500;
    assert.deepEqual([buckets.take('a'), buckets.take('a'), buckets.take('a')], [ALLOWED, ALLOWED, refused(500)]);
  });

  it('is told whole milliseconds, rounded up, where a token takes a fraction', () => {
    const { buckets, clock } = setUp({ max: 3, window: 1000 });
    takeMany(buckets, 'a', 3);
    assert.deepEqual(buckets.take('a'), refused(334));
    clock.now += 333;
    assert.deepEqual(buckets.take('a'), refused(1));
    clock.now += 1;
    assert.deepEqual([buckets.take('a'), buckets.take('a')], [ALLOWED, refused(333)]);
  });

  it('is counted exactly after years', () => {
    const { buckets, clock } = setUp({ max: 100, window: 60_000 });
    buckets.take('a');
    clock.now += 10 * 365 * 24 * 3600 * 1000 + 1;
    assert.equal(takeMany(buckets, 'a', 200), 100);
    assert.deepEqual(buckets.take('a'), refused(600));
    clock.now += 599;
    assert.deepEqual(buckets.take('a'), refused(1));
  });
});

describe('a full table', () => {
  it('has new clients share one bucket', () => {
    const { buckets } = setUp({ max: 2, window: 2000, capacity: 1000 });
    for (let i = 0; i < 1000; i++) buckets.take(`stranger ${i}`);
    assert.deepEqual([buckets.take('a'), buckets.take('b'), buckets.take('c')], [ALLOWED, ALLOWED, refused(1000)]);
    assert.deepEqual([buckets.take('never seen'), buckets.take('stranger 0')], [refused(1000), ALLOWED]);
    assert.equal(buckets.size, 1000);
  });

  it('leaves those that have a place their own tokens', () => {
    const { buckets } = setUp({ max: 2, window: 2000, capacity: 1 });
    buckets.take('a');
    assert.equal(takeMany(buckets, 'b', 10), 2);
    assert.deepEqual([buckets.take('a'), buckets.take('a')], [ALLOWED, refused(1000)]);
  });

  it('has a client that finds a place later go on with what it had left', () => {
    const { buckets, clock } = setUp({ max: 2, window: 2000, capacity: 1 });
    buckets.take('a');
    takeMany(buckets, 'b', 2);
    clock.now += 1000;
    // The place is free, and the bucket half full.
    assert.deepEqual([buckets.take('b'), buckets.take('b')], [ALLOWED, refused(1000)]);
    assert.equal(buckets.size, 1);
  });

  it('resets nobody, however many addresses come', () => {
    const { buckets, clock } = setUp({ max: 3, window: 60_000, capacity: 100 });
    assert.equal(takeMany(buckets, 'victim', 10), 3);
    for (let i = 0; i < 100_000; i++) {
      buckets.take(`attacker ${i}`);
      assert.ok(buckets.size <= 100);
    }
    assert.deepEqual(buckets.take('victim'), refused(20_000));
    clock.now += 19_999;
    for (let i = 0; i < 1000; i++) buckets.take(`attacker again ${i}`);
    assert.deepEqual(buckets.take('victim'), refused(1));
  });

  it('gives the place of a bucket that is full again to a new client', () => {
    const { buckets, clock } = setUp({ max: 2, window: 2000, capacity: 2 });
    takeMany(buckets, 'a', 2);
    buckets.take('b');
    clock.now += 1000;
    assert.deepEqual([buckets.take('c'), buckets.take('c'), buckets.take('c')], [ALLOWED, ALLOWED, refused(1000)]);
    assert.deepEqual([buckets.take('a'), buckets.take('a')], [ALLOWED, refused(1000)]);
    assert.equal(buckets.size, 2);
  });

  it('holds 100,000 clients when nothing else is said', () => {
    const { buckets } = setUp({ max: 1, window: 60_000 });
    const allowed = Array.from({ length: 100_010 }, (_, i) => buckets.take(`client ${i}`).granted);
    assert.deepEqual([allowed.filter(Boolean).length, allowed.lastIndexOf(1)], [100_001, 100_000]);
    assert.equal(buckets.size, 100_000);
  });
});

/** The same limits in the plainest form: every bucket counts credits, `window` of them to the token, `max` a millisecond. */
class PlainBuckets {
  readonly #credits = new Map<string, number>();
  readonly #full: number;
  readonly #max: number;
  readonly #window: number;

  constructor(max: number, window: number) {
    this.#max = max;
    this.#window = window;
    this.#full = max * window;
  }

  pass(ms: number): void {
    for (const [key, credits] of this.#credits) this.#credits.set(key, Math.min(this.#full, credits + ms * this.#max));
  }

  take(key: string): TokenTake {
    const credits = this.#credits.get(key) ?? this.#full;
    if (credits < this.#window) return refused(Math.ceil((this.#window - credits) / this.#max));
    this.#credits.set(key, credits - this.#window);
    return ALLOWED;
  }
}

const upTo = (max: number) => fc.integer({ min: 1, max });
const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ key: fc.integer({ min: 0, max: 9 }).map(String) }) },
    { weight: 1, arbitrary: fc.record({ ms: fc.integer({ min: -30, max: 120 }) }) },
  ),
  { maxLength: 200 },
);

/** Runs the steps; `taken` hears of every request, told what a plain count of all that was let in says of it. */
function run(
  { max, window, capacity }: { max: number; window: number; capacity: number },
  actions: typeof steps extends fc.Arbitrary<infer T> ? T : never,
  taken: (answer: TokenTake, plain: () => TokenTake) => void,
): void {
  const { buckets, clock } = setUp({ max, window, capacity });
  const plain = new PlainBuckets(max, window);
  for (const action of actions) {
    if ('ms' in action) {
      clock.now += action.ms;
      // A take in between lets the step back be seen; two steps with none between are one to the clock.
      plain.pass(Math.max(0, action.ms));
    }
    const key = 'key' in action ? action.key : '0';
    taken(buckets.take(key), () => plain.take(key));
    assert.ok(buckets.size <= capacity);
  }
}

it('answers as plain counting does while there is a place for everyone', () => {
  fc.assert(
    fc.property(upTo(5), upTo(300), steps, (max, window, actions) => {
      run({ max, window, capacity: 10 }, actions, (answer, plain) => assert.deepEqual(answer, plain()));
    }),
    { numRuns: 500 },
  );
});

it('never lets in whom plain counting refuses, however few places there are', () => {
  fc.assert(
    fc.property(upTo(5), upTo(300), upTo(6), steps, (max, window, capacity, actions) => {
      run({ max, window, capacity }, actions, (answer, plain) => {
        if (answer.granted > 0) assert.deepEqual(plain(), ALLOWED);
      });
    }),
    { numRuns: 1000 },
  );
});

it('keeps its word to those without a place: who waits as long as told is let in, unless others come meanwhile', () => {
  fc.assert(
    fc.property(upTo(5), upTo(300), upTo(3), steps, (max, window, capacity, actions) => {
      const { buckets, clock } = setUp({ max, window, capacity });
      for (const action of actions) {
        if ('ms' in action) clock.now += Math.max(0, action.ms);
        else {
          const { granted, retryAfter } = buckets.take(action.key);
          if (granted > 0) continue;
          clock.now += retryAfter - 1;
          assert.deepEqual(buckets.take(action.key), refused(1));
          clock.now += 1;
          assert.deepEqual(buckets.take(action.key), ALLOWED);
        }
      }
    }),
    { numRuns: 500 },
  );
});
