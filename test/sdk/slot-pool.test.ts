/** Tenants share slots, some up to a limit of their own. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type Release, Semaphore } from '../../lib/bounded/semaphore.ts';

const LONG = 60_000;
const settle = () => new Promise((resolve) => setImmediate(resolve));

function poolOf(limit: number, caps: Readonly<Record<string, number>>): Semaphore {
  const pool = new Semaphore(limit);
  pool.change({ limit, caps: new Map(Object.entries(caps)) });
  return pool;
}

function takeAll(pool: Semaphore, name: string): number {
  let taken = 0;
  while (pool.tryAcquire(name) !== undefined) taken += 1;
  return taken;
}

describe('slots that are shared', () => {
  it('that come free go to the first who may have one, whoever came before', async () => {
    const pool = poolOf(4, { a: 3 });
    const [first] = [1, 2, 3].map(() => pool.tryAcquire('a'));
    const order: string[] = [];
    const wait = async (name: string, label: string) => {
      const release = await pool.acquire(LONG, undefined, name);
      order.push(label);
      return release;
    };
    const waiting = [wait('a', 'a1'), wait('b', 'b1'), wait('b', 'b2'), wait('a', 'a2')];
    await settle();
    assert.deepEqual([order, pool.waiting], [['b1'], 3]);
    first?.();
    await settle();
    assert.deepEqual(order, ['b1', 'a1']);
    (await waiting[1])?.();
    await settle();
    assert.deepEqual(order, ['b1', 'a1', 'b2']);
  });

  it('are counted on when limits change: what is held counts, and who waits is served', async () => {
    const pool = poolOf(2, {});
    const held = [pool.tryAcquire('a'), pool.tryAcquire('a')];
    const fewer = { limit: 1 };
    const takeBackFewer = pool.change(fewer);
    held[0]?.();
    assert.deepEqual([pool.inUse, pool.tryAcquire('b')], [1, undefined]);
    let granted = false;
    const waiting = pool.acquire(LONG, undefined, 'b');
    waiting.then(() => {
      granted = true;
    });
    await settle();
    assert.equal(granted, false);
    const takeBackMore = pool.change({ limit: 4, caps: new Map([['b', 2]]) });
    const got = await waiting;
    assert.ok(got);
    // One that is gone may have what is left.
    assert.deepEqual([takeAll(pool, 'b'), takeAll(pool, 'a'), pool.inUse], [1, 1, 4]);
    takeBackFewer();
    takeBackFewer();
    got();
    assert.equal(takeAll(pool, 'b'), 1);
    takeBackMore();
    assert.equal(takeAll(pool, 'a'), 0);
    held[1]?.();
    assert.equal(pool.inUse, 3);
  });

  it('are never more than there are, nor more than a tenant may have, nor idle while somebody may have one', async () => {
    const steps = fc.array(fc.tuple(fc.nat(4), fc.boolean()), { maxLength: 60 });
    const limits = fc.array(fc.option(fc.integer({ min: 1, max: 16 }), { nil: undefined }), {
      minLength: 1,
      maxLength: 5,
    });
    const run = async (
      limit: number,
      own: (number | undefined)[],
      sequence: readonly (readonly [number, boolean])[],
    ) => {
      const names = own.map((_, i) => `p${i}`);
      const caps = own.flatMap((each, i): [string, number][] => (each === undefined ? [] : [[`p${i}`, each]]));
      const pool = poolOf(limit, Object.fromEntries(caps));
      const held = new Map(names.map((name) => [name, [] as Release[]]));
      const waiting = new Map(names.map((name) => [name, 0]));
      const wait = (name: string, by: number) => waiting.set(name, (waiting.get(name) ?? 0) + by);
      for (const [which, takes] of sequence) {
        const name = `p${which % own.length}`;
        const mine = held.get(name) ?? [];
        if (takes) {
          wait(name, 1);
          const granted = pool.acquire(LONG, undefined, name);
          void granted.then((release) => release && wait(name, -1) && mine.push(release));
        } else mine.shift()?.();
        await settle();
        const inUse = names.map((each) => held.get(each)?.length ?? 0);
        assert.ok(pool.inUse <= limit && pool.inUse === inUse.reduce((sum, each) => sum + each, 0));
        for (const [i, each] of inUse.entries()) {
          const most = own[i] ?? limit;
          assert.ok(each <= most, inUse.join());
          assert.ok(waiting.get(`p${i}`) === 0 || pool.inUse === limit || each === most, `p${i} waits for nothing`);
        }
      }
    };
    await fc.assert(fc.asyncProperty(fc.integer({ min: 1, max: 16 }), limits, steps, run), { numRuns: 200 });
  });
});
