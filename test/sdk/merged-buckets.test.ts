import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { MemoryArea } from '../../plugins-sdk/memory-area.ts';
import { clientBuckets, MergedBuckets } from '../../plugins-sdk/merged-buckets.ts';
import type { StateArea } from '../../plugins-sdk/state-area.ts';
import { TokenBuckets } from '../../plugins-sdk/token-buckets.ts';

const HOUR = 3_600_000;
const LIMIT = { max: 10, window: 1000 * HOUR };

function setUp(t: TestContext, limit = LIMIT) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const engine = { isAway: false, isLate: false, asked: 0, debts: [] as number[] };
  const memory = new MemoryArea();
  const area: StateArea = {
    get: (key) => memory.get(key),
    swap: (...args) => memory.swap(...args),
    take: async (key, bounds, n, debt = 0) => {
      engine.asked += 1;
      if (engine.isAway) throw new Error('away');
      engine.debts.push(debt);
      const taken = await memory.take(key, bounds, n, debt);
      if (engine.isLate) throw new Error('no answer within 250 ms');
      return taken;
    },
  };
  const replica = () => new MergedBuckets(limit, area, () => !engine.isAway);
  const pass = async (milliseconds: number) => {
    t.mock.timers.tick(milliseconds);
    for (let turn = 0; turn < 3; turn++) await new Promise((done) => setImmediate(done));
  };
  const spend = (buckets: MergedBuckets, times: number, key = 'a') =>
    Array.from({ length: times }, () => buckets.take(key).allowed).filter(Boolean).length;
  return { engine, memory, replica, pass, spend };
}

describe('limits that replicas share', () => {
  it('are decided at once by each, and merged ten times a second', async (t) => {
    const { engine, replica, pass, spend } = setUp(t);
    const [one, other] = [replica(), replica()];
    assert.equal(spend(one, 12), 10);
    assert.equal(spend(other, 3), 3);
    await pass(99);
    assert.deepEqual(engine.debts, []);
    await pass(1);
    assert.deepEqual(engine.debts, [10, 3]);
    assert.equal(spend(other, 5), 0);
    assert.equal(spend(one, 5, 'b'), 5);
  });

  it('leave to the other what one has not spent', async (t) => {
    const { replica, pass, spend } = setUp(t);
    const [one, other] = [replica(), replica()];
    spend(one, 4);
    await pass(100);
    spend(other, 1);
    await pass(100);
    assert.equal(spend(other, 20), 5);
  });

  it('count what is spent while a merge is under way', async (t) => {
    const { engine, replica, pass, spend } = setUp(t);
    const one = replica();
    spend(one, 4);
    t.mock.timers.tick(100);
    spend(one, 3);
    await pass(0);
    assert.equal(spend(one, 20), 3);
    await pass(100);
    assert.deepEqual(engine.debts, [4, 6]);
  });

  it('are those of each replica while the engine is away, and merged later', async (t) => {
    const { engine, replica, pass, spend } = setUp(t);
    const [one, other] = [replica(), replica()];
    engine.isAway = true;
    assert.deepEqual([spend(one, 12), spend(other, 12)], [10, 10]);
    await pass(100);
    await pass(100);
    engine.isAway = false;
    await pass(100);
    assert.deepEqual(engine.debts, [10, 10]);
    assert.equal(spend(replica(), 1), 1);
  });

  it('ask nothing of an engine that is away', async (t) => {
    const { engine, replica, pass, spend } = setUp(t);
    const one = replica();
    engine.isAway = true;
    spend(one, 1);
    for (let merges = 0; merges < 5; merges++) await pass(100);
    assert.equal(engine.asked, 0);
  });

  it('count once what an engine merged too late to say so', async (t) => {
    const { engine, replica, pass, spend } = setUp(t);
    const [one, other] = [replica(), replica()];
    engine.isLate = true;
    spend(one, 4);
    for (let merges = 0; merges < 5; merges++) await pass(100);
    engine.isLate = false;
    spend(other, 1);
    await pass(100);
    assert.deepEqual(engine.debts, [4, 1]);
    assert.equal(spend(other, 20), 5);
  });

  it('forget what has flowed in again while the engine was away', async (t) => {
    let now = 0;
    t.mock.method(performance, 'now', () => now);
    const { engine, replica, pass, spend } = setUp(t, { max: 10, window: 1000 });
    const one = replica();
    engine.isAway = true;
    for (const time of [0, 1000, 2000, 3000]) {
      now = time;
      assert.equal(spend(one, 12), 10);
      await pass(100);
    }
    now = 3500;
    engine.isAway = false;
    await pass(100);
    assert.deepEqual(engine.debts, [5]);
  });

  it('count all that was spent since the last merge, however much has flowed in meanwhile', async (t) => {
    let now = 0;
    t.mock.method(performance, 'now', () => now);
    const { engine, replica, pass, spend } = setUp(t, { max: 10, window: 100 });
    assert.equal(spend(replica(), 7), 7);
    now = 100;
    await pass(100);
    assert.deepEqual(engine.debts, [7]);
  });

  it('merge what is left when they are closed', async (t) => {
    const { engine, replica, pass, spend } = setUp(t);
    const one = replica();
    spend(one, 4);
    await one.close();
    assert.deepEqual(engine.debts, [4]);
    await pass(1000);
    assert.deepEqual(engine.debts, [4]);
  });

  it('of another size are others', async (t) => {
    const { memory, spend } = setUp(t);
    const [small, large] = [
      new MergedBuckets(LIMIT, memory, () => true),
      new MergedBuckets({ ...LIMIT, max: 20 }, memory, () => true),
    ];
    spend(small, 10);
    await small.close();
    assert.equal(spend(large, 1), 1);
    await large.close();
    assert.equal(spend(large, 30), 19);
    await large.close();
  });

  it('are those of the process without an engine that several processes share', (t) => {
    const { memory } = setUp(t);
    const shared = { engine: 'x', area: () => memory, doubts: () => [], available: () => true } as const;
    assert.ok(clientBuckets(LIMIT, undefined, 'a') instanceof TokenBuckets);
    assert.ok(clientBuckets(LIMIT, { ...shared, processes: 'one' }, 'a') instanceof TokenBuckets);
    assert.ok(clientBuckets(LIMIT, { ...shared, processes: 'many' }, 'a') instanceof MergedBuckets);
  });
});
