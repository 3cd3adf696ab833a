import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { ReplicaAnswers } from '../../../builtins/cache/replicas.ts';
import { MemoryArea, SignedResponse, type StateArea, StateUnavailable } from '../../../plugins-sdk/index.ts';
import { eventually } from '../../state/redis-server.ts';

const MAX_AGE = 60_000;
const PATIENCE = 5000;

function answer(value: string): SignedResponse {
  const [node, endpointId, signature] = ['0x01', '0x02', '0x03'] as const;
  return SignedResponse.of({ node, endpointId, timestamp: 1, field: 'rawData', value, signature, proof: undefined });
}

function setUp(change: (area: StateArea) => StateArea = (area) => area) {
  const clock = { now: 1_700_000_000_000 };
  const area = new MemoryArea({ now: () => clock.now });
  const replica = () => new ReplicaAnswers(change(area), () => clock.now);
  const client = new AbortController();
  const search = (replicas: ReplicaAnswers, patience = PATIENCE) =>
    replicas.search('key', MAX_AGE, patience, client.signal);
  return { clock, area, replica, search, client };
}

describe('an answer that no process has', () => {
  it('is made by one, and the other waits for it', async () => {
    const { replica, search } = setUp();
    const [one, other] = [replica(), replica()];
    const { lock, found, waited } = await search(one);
    assert.deepEqual([found, waited], [undefined, 0]);
    const waiting = search(other);
    lock?.store(answer('a'), MAX_AGE);
    const late = await waiting;
    assert.equal(late.found?.value.json, answer('a').json);
    assert.equal(late.lock, undefined);
    assert.ok(late.waited > 0);
    assert.equal((await search(one)).found?.ttl, MAX_AGE);
  });

  it('is made by the other when the first one fails', async () => {
    const { replica, search } = setUp();
    const { lock } = await search(replica());
    const waiting = search(replica());
    lock?.release();
    assert.notEqual((await waiting).lock, undefined);
  });

  it('is made by the other when the first one dies', async (t: TestContext) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const { replica, search, clock } = setUp();
    await search(replica());
    const waiting = search(replica());
    clock.now += 1000;
    assert.notEqual((await waiting).lock, undefined);
  });

  it('is waited for as long as the first one lives', async (t: TestContext) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const { replica, search, clock, area } = setUp();
    const { lock } = await search(replica());
    for (let second = 0; second < 5; second++) {
      clock.now += 900;
      t.mock.timers.tick(300);
      await new Promise((done) => setImmediate(done));
    }
    assert.notEqual(await area.get('lock key'), undefined);
    lock?.release();
    await eventually(async () => assert.equal(await area.get('lock key'), undefined));
  });

  it('is made by both when the wait is over, or the client has left', async () => {
    const { replica, search, client } = setUp();
    const { lock } = await search(replica());
    const { waited, ...alone } = await search(replica(), 60);
    assert.deepEqual(alone, {});
    assert.ok(waited >= 50);
    client.abort();
    assert.deepEqual(Object.keys(await search(replica())), ['waited']);
    lock?.release();
  });

  it('was stored between two looks: the lock is given back', async () => {
    let looks = 0;
    const { replica, search, area } = setUp((inner) => ({
      swap: inner.swap.bind(inner),
      take: inner.take.bind(inner),
      get: async (key) => {
        looks += 1;
        const text = await inner.get(key);
        if (looks === 1) await inner.swap(key, undefined, `${Date.now()} ${answer('b').json}`);
        return text;
      },
    }));
    const { found, lock } = await search(replica());
    assert.deepEqual([found?.value.json, lock], [answer('b').json, undefined]);
    assert.equal(await area.get('lock key'), undefined);
  });
});

describe('an engine that fails', () => {
  it('lets each process go on alone', async () => {
    for (const failing of [1, 2, 3]) {
      let asked = 0;
      const fail = () => {
        asked += 1;
        if (asked === failing) throw new StateUnavailable('away');
      };
      const { replica, search } = setUp((inner) => ({
        take: inner.take.bind(inner),
        get: async (key) => {
          fail();
          return inner.get(key);
        },
        swap: async (...args) => {
          fail();
          return inner.swap(...args);
        },
      }));
      const { found, lock } = await search(replica());
      assert.deepEqual([found, lock], [undefined, undefined], `${failing}`);
    }
  });

  it('and what nobody here wrote, is a miss', async () => {
    for (const text of ['', 'x', `1 {"node":1}`, `NaN ${answer('a').json.slice(1)}`]) {
      const { replica, search, area } = setUp();
      await area.swap('key', undefined, text);
      assert.equal((await search(replica())).found, undefined, text);
    }
  });
});

describe('answers in the engine', () => {
  it('are no more than 64 MiB of this process, until they end', async (t) => {
    let now = 0;
    t.mock.method(performance, 'now', () => now);
    const { area, replica, client } = setUp();
    const replicas = replica();
    const large = answer('x'.repeat(16 * 1024 * 1024));
    const store = async (key: string) => {
      const { lock } = await replicas.search(key, MAX_AGE, 0, client.signal);
      lock?.store(large, MAX_AGE);
      await eventually(async () => assert.equal(await area.get(`lock ${key}`), undefined));
      return (await area.get(key)) !== undefined;
    };
    const kept = [];
    for (const key of ['a', 'b', 'c', 'd']) kept.push(await store(key));
    assert.deepEqual(kept, [true, true, true, false]);
    now += MAX_AGE;
    assert.equal(await store('e'), true);
  });

  it('are as old as their maker’s clock says, and never older than they may be', async () => {
    const { replica, search, clock } = setUp();
    const one = replica();
    (await search(one)).lock?.store(answer('a'), MAX_AGE);
    await eventually(async () => assert.notEqual((await search(replica())).found, undefined));
    clock.now += MAX_AGE - 10;
    assert.equal((await search(one)).found?.ttl, 10);
    clock.now -= 2 * MAX_AGE;
    assert.equal((await search(one)).found?.ttl, MAX_AGE);
  });
});
