/** Replicas share a limit with few questions to the engine. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import fc from 'fast-check';
import { clientBuckets, MergedBuckets } from '../../builtins/shared/client-buckets.ts';
import type { StateArea } from '../../plugins-sdk/state/area.ts';
import { MemoryArea } from '../../plugins-sdk/state/memory-area.ts';

const HOUR = 3_600_000;
/** Of which a process may be 10 tokens ahead of the engine. */
const LIMIT = { max: 640, window: 1000 * HOUR };

function setUp(t: TestContext, limit = LIMIT) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const engine = { isAway: false, isLate: false, fails: false, asked: 0, debts: [] as number[] };
  const memory = new MemoryArea();
  const area: StateArea = {
    get: (key) => memory.get(key),
    compareAndSet: (...args) => memory.compareAndSet(...args),
    takeTokens: async (key, bounds, n, debt = 0) => {
      engine.asked += 1;
      if (engine.isAway || engine.fails) throw new Error('away');
      engine.debts.push(debt);
      const taken = await memory.takeTokens(key, bounds, n, debt);
      if (engine.isLate) throw new Error('no answer within 250 ms');
      return taken;
    },
  };
  const replica = () => new MergedBuckets(limit, area, () => !engine.isAway);
  const pass = async (milliseconds: number) => {
    t.mock.timers.tick(milliseconds);
    for (let turn = 0; turn < 3; turn++) await new Promise((done) => setImmediate(done));
  };
  const spend = async (buckets: Pick<MergedBuckets, 'take'>, times: number, key = 'a') => {
    const takes = await Promise.all(Array.from({ length: times }, () => buckets.take(key)));
    return takes.filter(({ granted }) => granted > 0).length;
  };
  return { engine, memory, replica, pass, spend };
}

function isGrantedAtOnce(take: ReturnType<MergedBuckets['take']>): boolean {
  return !(take instanceof Promise) && take.granted === 1 && take.retryAfter === 0;
}

describe('limits that replicas share', () => {
  it('are decided at once by each for a small part of the limit, and merged ten times a second', async (t) => {
    const { engine, replica, pass, spend } = setUp(t);
    const one = replica();
    for (let count = 0; count < 10; count++) assert.ok(isGrantedAtOnce(one.take('a')));
    await pass(99);
    assert.deepEqual(engine.debts, []);
    await pass(1);
    assert.deepEqual(engine.debts, [10]);
    assert.ok(isGrantedAtOnce(one.take('a')));
    assert.equal(await spend(one, 5, 'b'), 5);
  });

  it('let nobody in for a grant of the engine that is no number', async (t) => {
    const { replica } = setUp(t, { ...LIMIT, max: 1 });
    t.mock.method(MemoryArea.prototype, 'takeTokens', async () => ({ left: 0, retryAfter: 5, granted: Number.NaN }));
    assert.deepEqual(await replica().take('a'), { granted: 0, retryAfter: 5, left: 0 });
  });

  it('are asked of the engine beyond that', async (t) => {
    const { engine, replica, spend } = setUp(t);
    const [one, other] = [replica(), replica()];
    assert.equal(await spend(one, 700), 640);
    assert.equal(await spend(other, 20), 10);
    const { asked } = engine;
    assert.equal(await spend(other, 20), 0);
    assert.equal(engine.asked, asked, 'what the engine has refused is known');
  });

  it('leave to the other what one has not spent', async (t) => {
    const { replica, pass, spend } = setUp(t);
    const [one, other] = [replica(), replica()];
    await spend(one, 4);
    await pass(100);
    assert.equal(await spend(other, 700), 636);
  });

  it('are exact where they are small', async (t) => {
    const { replica, spend } = setUp(t, { ...LIMIT, max: 60 });
    const replicas = Array.from({ length: 4 }, replica);
    const counts = await Promise.all(replicas.map((one) => spend(one, 60)));
    assert.equal(
      counts.reduce((sum, count) => sum + count),
      60,
    );
    assert.equal(await spend(replica(), 60, 'alone'), 60);
  });

  it('let in the limit, and less than a quarter more, whatever comes to whom', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const scenario = fc.record({
      max: fc.integer({ min: 1, max: 300 }),
      parts: fc.array(fc.integer({ min: 0, max: 350 }), { minLength: 1, maxLength: 16 }),
      rounds: fc.integer({ min: 1, max: 2 }),
      merges: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), scenario, async (scheduler, { max, parts, rounds, merges }) => {
        const limit = { max, window: 1000 * HOUR };
        const memory = new MemoryArea();
        const area = { takeTokens: scheduler.scheduleFunction(memory.takeTokens.bind(memory)) };
        const replicas = parts.map((part) => ({ part, buckets: new MergedBuckets(limit, area, () => true) }));
        let allowed = 0;
        for (let round = 0; round < rounds; round++) {
          const takes = replicas.flatMap(({ part, buckets }) =>
            Array.from({ length: part }, async () => {
              const { granted } = await buckets.take('a');
              allowed += granted;
            }),
          );
          await scheduler.waitFor(Promise.all(takes));
          if (merges) {
            t.mock.timers.tick(100);
            await scheduler.waitAll();
          }
        }
        const asked = parts.reduce((sum, part) => sum + part, 0) * rounds;
        assert.ok(allowed >= Math.min(asked, max), `${allowed} of ${max}`);
        assert.ok(allowed <= max * 1.25, `${allowed} of ${max}`);
      }),
      { numRuns: 15 },
    );
  });

  it('count what is spent while a merge is under way', async (t) => {
    const { engine, replica, pass, spend } = setUp(t);
    const one = replica();
    await spend(one, 4);
    t.mock.timers.tick(100);
    // It is 4 tokens ahead already.
    const more = spend(one, 7);
    await pass(0);
    assert.equal(await more, 7);
    assert.deepEqual(engine.debts, [4, 0, 0, 0, 0, 0, 0, 0]);
    assert.equal(await spend(one, 700), 629);
  });

  it('are those of each replica while the engine is away', async (t) => {
    const { engine, replica, pass, spend } = setUp(t);
    const [one, other] = [replica(), replica()];
    engine.isAway = true;
    assert.deepEqual([await spend(one, 700), await spend(other, 700)], [640, 640]);
    engine.isAway = false;
    await pass(100);
    assert.deepEqual(engine.debts, []);
    assert.equal(await spend(one, 11), 0);
    assert.equal(await spend(replica(), 700), 640);
  });

  it('let in by themselves who waits for an engine that fails', async (t) => {
    const { engine, replica, spend } = setUp(t);
    const one = replica();
    engine.fails = true;
    assert.equal(await spend(one, 700), 640);
  });

  it('ask nothing of an engine that is away', async (t) => {
    const { engine, replica, pass, spend } = setUp(t);
    const one = replica();
    engine.isAway = true;
    await spend(one, 700);
    for (let merges = 0; merges < 5; merges++) await pass(100);
    assert.equal(engine.asked, 0);
  });

  it('count once what an engine merged too late to say so', async (t) => {
    const { engine, replica, pass, spend } = setUp(t);
    const [one, other] = [replica(), replica()];
    engine.isLate = true;
    await spend(one, 4);
    for (let merges = 0; merges < 5; merges++) await pass(100);
    engine.isLate = false;
    await spend(other, 1);
    await pass(100);
    assert.deepEqual(engine.debts, [4, 1]);
    assert.equal(await spend(other, 700), 635);
  });

  it('count all that was spent since the last merge, however much has flowed in meanwhile', async (t) => {
    let now = 0;
    t.mock.method(performance, 'now', () => now);
    const { engine, replica, pass, spend } = setUp(t, { max: 640, window: 100 });
    assert.equal(await spend(replica(), 7), 7);
    now = 100;
    await pass(100);
    assert.deepEqual(engine.debts, [7]);
  });

  it('of more clients than may wait are asked of the engine at once', async (t) => {
    const { engine, replica, pass, spend } = setUp(t);
    const one = replica();
    for (let client = 0; client < 1000; client++) one.take(`client ${client}`);
    assert.equal(engine.asked, 0);
    assert.equal(await spend(one, 1, 'another'), 1);
    assert.equal(engine.asked, 1);
    await pass(100);
    assert.ok(isGrantedAtOnce(one.take('later')), 'those that were merged wait no more');
  });

  it('of another size are others', async (t) => {
    const { memory, spend } = setUp(t);
    const [small, large] = [
      new MergedBuckets({ ...LIMIT, max: 10 }, memory, () => true),
      new MergedBuckets({ ...LIMIT, max: 20 }, memory, () => true),
    ];
    assert.equal(await spend(small, 10), 10);
    assert.equal(await spend(large, 30), 20);
  });

  it('are those of the process without an engine', (t) => {
    const { memory } = setUp(t);
    const shared = {
      engine: 'x',
      area: () => memory,
      doubts: () => [],
      available: () => true,
      sinceFailure: () => 0,
    };
    assert.ok(!(clientBuckets(LIMIT, undefined, 'a') instanceof MergedBuckets));
    assert.ok(clientBuckets(LIMIT, shared, 'a') instanceof MergedBuckets);
  });

  it('are parts of the limit, rounded up, for workers without an engine', async (t) => {
    const worker = clientBuckets({ ...LIMIT, max: 10 }, undefined, 'a', { count: 4 });
    const { spend } = setUp(t);
    assert.equal(await spend(worker, 5), 3);
    assert.equal((await worker.take('a')).left, 0);
    assert.equal(await spend(clientBuckets({ ...LIMIT, max: 10 }, undefined, 'a'), 15), 10);
  });
});
