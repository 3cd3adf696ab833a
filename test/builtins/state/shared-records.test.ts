/** Replicas share async requests: one runs each, and all tell of it. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { SharedRecords } from '../../../builtins/mode-async/shared-records.ts';
import { AsyncStore } from '../../../builtins/mode-async/store.ts';
import { SignedResponse } from '../../../plugins-sdk/index.ts';
import { MemoryArea, type StateArea, StateUnavailable } from '../../../plugins-sdk/state.ts';

const NODE = '0x01';
const answer = SignedResponse.of({
  ...{ node: NODE, endpointId: '0x02', timestamp: 1, field: 'rawData' },
  ...{ value: 'v', signature: '0x03', proof: undefined },
} as const);

function setUp(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const clock = { now: 1_700_000_000_000 };
  const memory = new MemoryArea({ now: () => clock.now });
  const engine = { isAway: false, wasAwayAt: Number.NEGATIVE_INFINITY, loses: false };
  const guard = async <R>(ask: () => Promise<R>): Promise<R> => {
    if (engine.isAway) throw new StateUnavailable('away');
    const result = await ask();
    if (engine.loses) throw new StateUnavailable('cut');
    return result;
  };
  const area: StateArea = {
    get: (key) => guard(() => memory.get(key)),
    compareAndSet: (...args) => guard(() => memory.compareAndSet(...args)),
    takeTokens: (...args) => guard(() => memory.takeTokens(...args)),
  };
  // As the service has it, which looks once a second: all of its processes notice.
  const sinceFailure = () => (engine.isAway ? 0 : clock.now - engine.wasAwayAt);
  const shared = { area: () => area, sinceFailure };
  const replica = (node = NODE, capacity = 100) => {
    const own = new AsyncStore<SignedResponse>(capacity);
    return { own, records: new SharedRecords(own, shared, node) };
  };
  const pass = async (milliseconds: number) => {
    if (engine.isAway) engine.wasAwayAt = clock.now;
    clock.now += milliseconds;
    t.mock.timers.tick(milliseconds);
    for (let turn = 0; turn < 20; turn++) await new Promise((done) => setImmediate(done));
  };
  return { clock, engine, memory, replica, pass };
}

describe('async requests that replicas share', () => {
  it('are read by any of them, at every step, and by no service of another signer', async (t) => {
    const { replica } = setUp(t);
    const [one, other, foreign] = [replica(), replica(), replica('0x09')];
    assert.equal(await other.records.get('id'), undefined);
    assert.equal(await one.records.reserve('id'), true);
    assert.deepEqual(await other.records.get('id'), { status: 'pending' });
    assert.equal(await one.records.processing('id'), true);
    assert.deepEqual(await other.records.get('id'), { status: 'processing' });
    assert.equal(await one.records.end('id', { status: 'complete', answer }), true);
    const record = await other.records.get('id');
    assert.ok(record?.status === 'complete');
    assert.equal(record.answer.json, answer.json);
    assert.equal(await foreign.records.get('id'), undefined);
    await one.records.reserve('failing');
    await one.records.processing('failing');
    await one.records.end('failing', { status: 'failed', error: 'API call failed' });
    assert.deepEqual(await other.records.get('failing'), { status: 'failed', error: 'API call failed' });
  });

  it('keep the headers of an end', async (t) => {
    const { replica } = setUp(t);
    const [one, other] = [replica(), replica()];
    const headers = { 'X-A': '1\n', 'X-B': 'complete ' };
    for (const id of ['good', 'bad']) {
      await one.records.reserve(id);
      await one.records.processing(id);
    }
    await one.records.end('good', { status: 'complete', answer, headers });
    await one.records.end('bad', { status: 'failed', error: 'first\nsecond', headers });
    const record = await other.records.get('good');
    assert.ok(record?.status === 'complete');
    assert.deepEqual([record.answer.json, record.headers], [answer.json, headers]);
    assert.deepEqual(await other.records.get('bad'), { status: 'failed', error: 'first\nsecond', headers });
  });

  it('do not show their id in the engine', async (t) => {
    const { replica, memory } = setUp(t);
    const keys: string[] = [];
    t.mock.method(memory, 'compareAndSet', async (key: string) => void keys.push(key));
    await replica().records.reserve('secret-id');
    assert.equal(keys.length, 1);
    assert.ok(keys[0]?.startsWith(`${NODE} `) && !keys[0].includes('secret-id'), keys[0]);
  });

  it('outlive their process, for ten minutes', async (t) => {
    const { clock, replica, pass } = setUp(t);
    const [one, other] = [replica(), replica()];
    await one.records.reserve('id');
    await one.records.processing('id');
    await pass(599_999);
    assert.deepEqual(await other.records.get('id'), { status: 'processing' });
    clock.now += 1;
    assert.equal(await other.records.get('id'), undefined);
  });

  it('end after ten minutes without an answer, and a minute after one', async (t) => {
    const { replica, pass } = setUp(t);
    const { records } = replica();
    await records.reserve('slow');
    await records.processing('slow');
    for (let minute = 0; minute < 10; minute++) for (let tens = 0; tens < 6; tens++) await pass(10_000);
    await pass(30_000);
    assert.equal(await records.get('slow'), undefined);
    assert.equal(await records.end('slow', { status: 'complete', answer }), false);
    await records.reserve('quick');
    await records.processing('quick');
    await records.end('quick', { status: 'complete', answer });
    await pass(59_999);
    assert.equal((await records.get('quick'))?.status, 'complete');
    await pass(1);
    assert.equal(await records.get('quick'), undefined);
  });

  it('are bounded in each process by itself', async (t) => {
    const { replica } = setUp(t);
    const [one, other] = [replica(NODE, 4), replica(NODE, 4)];
    const reserve = (records: SharedRecords, n: number) => records.reserve(`${n}`);
    for (const n of [1, 2, 3, 4]) assert.equal(await reserve(one.records, n), true);
    assert.equal(await reserve(one.records, 5), false);
    assert.equal(await reserve(other.records, 5), true);
  });

  it('that ended make room in their process, since any other may be the one that reads them', async (t) => {
    const { replica } = setUp(t);
    const [one, other] = [replica(NODE, 2), replica(NODE, 2)];
    for (const id of ['a', 'b', 'c', 'd']) {
      assert.equal(await one.records.reserve(id), true, id);
      await one.records.processing(id);
      await one.records.end(id, { status: 'complete', answer });
    }
    assert.deepEqual([one.own.size, one.own.taken], [2, 0]);
    for (const { records } of [other, one])
      for (const id of ['a', 'b', 'c', 'd']) assert.equal((await records.get(id))?.status, 'complete', id);
  });

  it('cannot begin while the engine is away, nor take room then', async (t) => {
    const { engine, replica } = setUp(t);
    const { own, records } = replica();
    engine.isAway = true;
    await assert.rejects(records.reserve('id'), StateUnavailable);
    assert.equal(own.size, 0);
    await assert.rejects(records.get('id'), StateUnavailable);
  });

  it('that ended while the engine was away are there once it is back', async (t) => {
    const { engine, replica, pass } = setUp(t);
    const [one, other] = [replica(), replica()];
    await one.records.reserve('id');
    engine.isAway = true;
    await one.records.processing('id');
    const completed = one.records.end('id', { status: 'complete', answer });
    await pass(35_000);
    engine.isAway = false;
    await pass(1000);
    assert.equal(await completed, true);
    assert.equal((await other.records.get('id'))?.status, 'complete');
  });

  it('whose engine stays away are given up once nobody could read them', async (t) => {
    const { engine, replica, pass } = setUp(t);
    const { records } = replica();
    await records.reserve('id');
    await records.processing('id');
    engine.isAway = true;
    const completed = assert.rejects(records.end('id', { status: 'complete', answer }), StateUnavailable);
    for (let minutes = 0; minutes < 10; minutes++) await pass(60_000);
    await completed;
  });

  it('whose engine was away for 75 s at their end, and forgot them, are there again: nobody is told that there is no such request', async (t) => {
    const { engine, memory, replica, pass } = setUp(t);
    const [one, other] = [replica(), replica()];
    const forgotten = t.mock.method(memory, 'compareAndSet');
    await one.records.reserve('id');
    const key = String(forgotten.mock.calls[0]?.arguments[0]);
    await one.records.processing('id');
    engine.isAway = true;
    const completed = one.records.end('id', { status: 'complete', answer });
    for (let seconds = 0; seconds < 75; seconds++) await pass(1000);
    await memory.compareAndSet(key, '{"status":"processing"}', undefined);
    engine.isAway = false;
    assert.deepEqual(await one.records.get('id'), { status: 'processing' });
    // Nobody but its process knows of it.
    await assert.rejects(other.records.get('id'), { message: 'the engine was away until a moment ago' });
    await pass(1000);
    assert.equal(await completed, true);
    for (const { records } of [one, other]) assert.equal((await records.get('id'))?.status, 'complete');
  });

  it('that ended are so in their process, though the engine has gone back to a time before, as by a failover', async (t) => {
    const { memory, replica } = setUp(t);
    const written = t.mock.method(memory, 'compareAndSet');
    const { records } = replica();
    await records.reserve('id');
    await records.processing('id');
    await records.end('id', { status: 'complete', answer });
    const [key, processing = '', complete = ''] = written.mock.calls.at(-1)?.arguments ?? [];
    await memory.compareAndSet(String(key), complete, processing);
    assert.equal((await records.get('id'))?.status, 'complete');
  });

  it('whose write was done although its answer was lost are as they were meant', async (t) => {
    const { engine, replica, pass } = setUp(t);
    const { records } = replica();
    await records.reserve('id');
    engine.loses = true;
    await records.processing('id');
    const completed = records.end('id', { status: 'complete', answer });
    await pass(0);
    engine.loses = false;
    await pass(1000);
    assert.equal(await completed, true);
    assert.equal((await records.get('id'))?.status, 'complete');
  });
});
