import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import fc from 'fast-check';
import type { StateArea } from '../../plugins-sdk/state/area.ts';
import { MemoryArea } from '../../plugins-sdk/state/memory-area.ts';
import { eventually } from '../support/wait.ts';

/** Areas of one engine, under test. */
export interface Subject {
  /** An area in which nothing is. */
  area(): StateArea;
  close?(): Promise<void>;
}

const HOUR = 3_600_000;

const key = fc.constantFrom('a', 'b', 'a:b', 'ä', '', 'x'.repeat(200));
const value = fc.oneof(fc.constantFrom('', '0', 'one', 'two\n"\u2028\0', '\ud83d\ude00'), fc.string({ maxLength: 40 }));
const step = fc.oneof(
  fc.record({ kind: fc.constant('get' as const), key }),
  fc.record({
    kind: fc.constant('swap' as const),
    key,
    /** Whether it expects what stands there. */
    right: fc.boolean(),
    wrong: fc.option(value, { nil: undefined }),
    next: fc.option(value, { nil: undefined }),
    options: fc.record(
      { ttl: fc.constantFrom(HOUR, 2 * HOUR), keepLonger: fc.boolean(), durable: fc.boolean() },
      { requiredKeys: [] },
    ),
  }),
  fc.record({
    kind: fc.constant('take' as const),
    key,
    n: fc.integer({ min: 0, max: 7 }),
    debt: fc.integer({ min: 0, max: 12 }),
  }),
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** A bucket that holds 10 tokens, and in a test gets no other. */
const limit = { max: 10, window: 1000 * HOUR };

async function run(area: StateArea, taken: Step): Promise<unknown> {
  if (taken.kind === 'get') return area.get(taken.key);
  if (taken.kind === 'swap') {
    const expected = taken.right ? await area.get(taken.key) : taken.wrong;
    return area.compareAndSet(taken.key, expected, taken.next, taken.options);
  }
  const { granted, left, retryAfter } = await area.takeTokens(taken.key, limit, taken.n, taken.debt);
  return { granted, left: Math.floor(left + 0.01), waits: retryAfter > 0 };
}

const gone = (area: StateArea, key: string) =>
  eventually(async () => (await area.get(key)) === undefined, `the end of the value of ${key}`);

/** What holds of every engine. @param open makes one; it is closed in the end. */
export function contract(open: () => Subject | Promise<Subject>): void {
  let subject: Subject;
  before(async () => {
    subject = await open();
  });
  after(() => subject.close?.());
  const area = () => subject.area();
  ofOneAndMany(area);
  ofTime(area);
  ofBuckets(area);
}

function ofOneAndMany(newArea: () => StateArea): void {
  it('does what the one in memory does', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const area = newArea();
        const model = new MemoryArea();
        for (const taken of steps) assert.deepEqual(await run(area, taken), await run(model, taken));
      }),
      { numRuns: 60 },
    );
  });

  it('reads what it was asked to write before, though nothing waited for that', async () => {
    const area = newArea();
    const written = area.compareAndSet('a', undefined, 'b', { durable: true });
    assert.equal(await area.get('a'), 'b');
    assert.equal(await written, undefined);
  });

  it('lets one of many racing swaps win', async () => {
    const area = newArea();
    for (const round of Array.from({ length: 20 }, (_, index) => `round ${index}`)) {
      const swaps = Array.from({ length: 64 }, (_, index) =>
        area.compareAndSet(round, undefined, `${index}`, { durable: true }),
      );
      const results = await Promise.all(swaps);
      const winner = results.indexOf(undefined);
      assert.deepEqual(
        results,
        results.map((_, index) => (index === winner ? undefined : { value: `${winner}` })),
      );
    }
  });

  it('keeps areas apart', async () => {
    const [one, other] = [newArea(), newArea()];
    assert.equal(await one.compareAndSet('a', undefined, 'b'), undefined);
    assert.equal(await other.get('a'), undefined);
  });

  it('keeps values and buckets of one key apart', async () => {
    const area = newArea();
    assert.equal(await area.compareAndSet('a', undefined, 'b'), undefined);
    assert.equal((await area.takeTokens('a', limit)).granted, 1);
    assert.equal(await area.get('a'), 'b');
  });
}

function ofTime(newArea: () => StateArea): void {
  it('forgets a value after its time, and lets a new one begin', async () => {
    const area = newArea();
    assert.equal(await area.compareAndSet('a', undefined, 'b', { ttl: 50 }), undefined);
    await gone(area, 'a');
    assert.equal(await area.compareAndSet('a', undefined, 'c', { ttl: HOUR }), undefined);
    assert.equal(await area.get('a'), 'c');
  });

  it('takes the time of the last swap, unless the longer one is to be kept', async () => {
    const area = newArea();
    await area.compareAndSet('short', undefined, '1', { ttl: HOUR });
    await area.compareAndSet('long', undefined, '1', { ttl: HOUR });
    await area.compareAndSet('ever', undefined, '1');
    await area.compareAndSet('short', '1', '2', { ttl: 50 });
    await area.compareAndSet('long', '1', '2', { ttl: 50, keepLonger: true });
    await area.compareAndSet('ever', '1', '2', { ttl: 50, keepLonger: true });
    await gone(area, 'short');
    assert.deepEqual([await area.get('long'), await area.get('ever')], ['2', '2']);
  });
}

function ofBuckets(newArea: () => StateArea): void {
  it('fills a bucket again as time goes by', async () => {
    const area = newArea();
    const quick = { max: 2, window: 200 };
    assert.deepEqual(await area.takeTokens('a', quick, 5), { granted: 2, retryAfter: 100, left: 0 });
    for (let granted = 0; granted < 4; ) {
      const taken = await area.takeTokens('a', quick);
      assert.ok(taken.granted <= 1 && taken.left < 2);
      granted += taken.granted;
      await setTimeout(taken.retryAfter);
    }
  });

  it('counts a bucket of a thousand million tokens one by one', async () => {
    const area = newArea();
    const huge = { max: 1_000_000_000, window: 1000 * HOUR };
    assert.equal((await area.takeTokens('a', huge, 999_999_990)).granted, 999_999_990);
    for (let left = 9; left >= 0; left--) {
      const taken = await area.takeTokens('a', huge);
      assert.equal(taken.granted, 1);
    }
  });
}
