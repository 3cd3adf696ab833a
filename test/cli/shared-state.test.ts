/** Plugins keep state in the engine that the config names. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import {
  type StateArea,
  type StateEngine,
  StatePartUnavailable,
  StateUnavailable,
} from '../../plugins-sdk/state/area.ts';
import { MemoryArea } from '../../plugins-sdk/state/memory-area.ts';
import { StateClient } from '../../service/shared-state.ts';

type Fault = 'none' | 'refuses' | 'hangs' | 'is full' | 'is partly away' | 'varies';

const unmeasured = { histogram: () => () => undefined, gauge: () => undefined, connect: () => undefined };

/** An engine whose faults the test decides, and the client in front of it. */
function setUp(t: TestContext, timeout?: number) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  const state = { fault: 'none' as Fault, asked: 0, looks: 0 };
  const memory = new MemoryArea();
  const answer = async <T>(from: () => Promise<T>): Promise<T> => {
    state.asked += 1;
    if (state.fault === 'hangs') return new Promise(() => undefined);
    if (state.fault === 'refuses') throw new Error('connection refused, by s3cret');
    if (state.fault === 'is partly away') throw partlyAway;
    if (state.fault === 'varies') throw new Error(`reason ${state.asked}`);
    return from();
  };
  const faulty: StateArea = {
    get: (...args) => answer(() => memory.get(...args)),
    compareAndSet: (...args) =>
      answer(() => {
        if (state.fault === 'is full' && args[2] !== undefined) throw new Error('full');
        return memory.compareAndSet(...args);
      }),
    takeTokens: (...args) => answer(() => memory.takeTokens(...args)),
  };
  const looking: StateArea = {
    ...faulty,
    compareAndSet: (...args) => faulty.compareAndSet(...args).finally(() => void state.looks++),
  };
  const engine: StateEngine = {
    start: async () => undefined,
    doubts: () => ['a doubt'],
    area: (name) => (name === 'probe' ? looking : faulty),
    close: () => (state.fault === 'hangs' ? new Promise<void>(() => undefined) : Promise.resolve()),
  };
  const lines: string[] = [];
  const write = (level: string) => (message: string, fields?: object) =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  const hide = (text: string) => text.replaceAll('s3cret', '***');
  const type = timeout === undefined ? {} : { timeout };
  const client = new StateClient({ name: 'test', type, engine, log, hide });
  const measured: string[] = [];
  client.measure({ ...unmeasured, counter: () => (labels) => void measured.push(Object.values(labels).join(' ')) });
  /** Lets timers fire, and what waits for them go on. */
  const pass = async (milliseconds: number) => {
    t.mock.timers.tick(milliseconds);
    for (let turn = 0; turn < 5; turn++) await new Promise((done) => setImmediate(done));
  };
  return { state, engine, client, area: client.area('x'), lines, measured, pass };
}

const partlyAway = new StatePartUnavailable('nobody has that key');
const refused = new StateUnavailable('connection refused, by ***');
const away = new StateUnavailable('the engine of settings.state is away (test)');

describe('the engine of settings.state, as plugins use it', () => {
  it('answers what it is asked, by area', async (t) => {
    const { client, area, measured } = setUp(t);
    assert.equal(await area.compareAndSet('a', undefined, 'b'), undefined);
    assert.equal(await area.get('a'), 'b');
    assert.equal((await area.takeTokens('a', { max: 1, window: 1 })).granted, 1);
    assert.deepEqual(measured, ['swap done', 'get done', 'take done']);
    assert.equal(client.area('x'), area);
    assert.deepEqual([client.engine, client.doubts()], ['test', ['a doubt']]);
  });

  it('says how long ago it failed, though nobody but its own look has noticed', async (t) => {
    const { state, client, pass } = setUp(t);
    await client.start();
    assert.equal(client.sinceFailure(), Number.POSITIVE_INFINITY);
    state.fault = 'refuses';
    await pass(1000);
    state.fault = 'none';
    await pass(200);
    assert.ok(Number.isFinite(client.sinceFailure()));
    await client.close();
  });

  it('is not away when some keys are, however often they are asked for', async (t) => {
    const { state, client, area, lines } = setUp(t);
    state.fault = 'is partly away';
    for (let failures = 0; failures < 10; failures++) await assert.rejects(area.get('a'), partlyAway);
    assert.equal(client.available(), true);
    assert.ok(Number.isFinite(client.sinceFailure()));
    assert.deepEqual(lines, []);
  });

  for (const timeout of [undefined, 1000]) {
    const most = timeout ?? 250;
    it(`has ${most} ms for an answer where its type names ${timeout ?? 'no time'}`, async (t) => {
      const { state, area, pass } = setUp(t, timeout);
      state.fault = 'hangs';
      const answer = area.get('a').catch((error: unknown) => error);
      await pass(most - 1);
      assert.equal(await Promise.race([answer, 'nothing yet']), 'nothing yet');
      await pass(1);
      assert.deepEqual(await answer, new StateUnavailable(`no answer within ${most} ms`));
    });
  }

  it('is left alone after five failures in a row, until a look finds it well', async (t) => {
    const { state, client, area, lines, measured, pass } = setUp(t);
    await client.start();
    state.fault = 'refuses';
    for (let failures = 0; failures < 4; failures++) await assert.rejects(area.get('a'), refused);
    state.fault = 'none';
    await area.get('a');
    state.fault = 'refuses';
    for (let failures = 0; failures < 5; failures++) {
      assert.equal(client.available(), true);
      await assert.rejects(area.get('a'), refused);
    }
    assert.equal(client.available(), false);
    const { asked, looks } = state;
    await assert.rejects(area.get('a'), away);
    assert.equal(state.asked, asked);
    assert.equal(measured.at(-1), 'get rejected');
    await pass(1000);
    assert.equal(state.looks, looks + 1);
    assert.equal(client.available(), false);
    state.fault = 'none';
    await pass(1000);
    assert.equal(client.available(), true);
    assert.equal(await area.get('a'), undefined);
    assert.deepEqual(lines, [
      'error the engine of settings.state is away {"engine":"test","error":"connection refused, by ***"}',
      'info the engine of settings.state is back {"engine":"test"}',
    ]);
    await client.close();
  });

  it('says each reason for which it is away once, and five at most', async (t) => {
    const { state, client, area, lines, pass } = setUp(t);
    await client.start();
    state.fault = 'refuses';
    for (let failures = 0; failures < 5; failures++) await assert.rejects(area.get('a'), refused);
    state.fault = 'hangs';
    for (let looks = 0; looks < 3; looks++) for (const wait of [1000, 250]) await pass(wait);
    const said = lines.map((line) => JSON.parse(line.slice(line.indexOf('{'))).error);
    assert.deepEqual(said, ['connection refused, by ***', 'no answer within 250 ms']);
    assert.ok(lines.every((line) => line.startsWith('error the engine of settings.state is away {')));
    state.fault = 'varies';
    for (let looks = 0; looks < 10; looks++) await pass(1000);
    assert.equal(lines.length, 5);
    state.fault = 'none';
    await pass(1000);
    state.fault = 'refuses';
    for (let failures = 0; failures < 5; failures++) await assert.rejects(area.get('a'), refused);
    assert.match(lines.at(-1) ?? '', /^error the engine of settings\.state is away .*connection refused/);
    await client.close();
  });

  for (const fault of ['refuses', 'is full'] as const) {
    it(`is looked at without being asked for anything else: ${fault}`, async (t) => {
      const { state, client, lines, pass } = setUp(t);
      await client.start();
      state.fault = fault;
      await pass(1000);
      for (let looks = 0; looks < 4; looks++) await pass(200);
      assert.equal(client.available(), false);
      state.fault = 'none';
      await pass(1000);
      assert.equal(client.available(), true);
      assert.equal(lines.length, 2);
      await client.close();
      const { looks } = state;
      await pass(10_000);
      assert.equal(state.looks, looks);
    });
  }

  it('is away as long as it is full, though it can still delete', async (t) => {
    const { state, client, area, lines, pass } = setUp(t);
    await client.start();
    state.fault = 'is full';
    for (let failures = 0; failures < 5; failures++) {
      await Promise.all([area.get('a'), area.compareAndSet('a', undefined, undefined)]);
      await assert.rejects(area.compareAndSet('a', undefined, 'b'), new StateUnavailable('full'));
    }
    assert.equal(client.available(), false);
    for (let looks = 0; looks < 5; looks++) await pass(1000);
    assert.deepEqual([client.available(), lines.length], [false, 1]);
    state.fault = 'none';
    await pass(1000);
    assert.deepEqual([client.available(), lines.length], [true, 2]);
    await client.close();
  });

  it('does not keep the service from ending', async (t) => {
    const { state, client, lines, pass } = setUp(t);
    state.fault = 'hangs';
    const closed = client.close();
    await pass(4999);
    assert.deepEqual(lines, []);
    await pass(1);
    await closed;
    assert.deepEqual(lines, ['error the engine of settings.state did not stop in time {"engine":"test"}']);
  });

  it('does not start when it refuses what it will be asked for', async (t) => {
    const { state, client } = setUp(t);
    state.fault = 'refuses';
    await assert.rejects(client.start(), new Error('settings.state: connection refused, by ***'));
  });

  it('has a minute to start', async (t) => {
    const { client, engine, pass } = setUp(t);
    t.mock.method(engine, 'start', () => new Promise(() => undefined));
    const refused = assert.rejects(client.start(), new Error('settings.state: "test" is not ready after 60000 ms'));
    await pass(60_000);
    await refused;
  });

  it('hides secrets in the reason why it cannot start', async (t) => {
    const { client, engine } = setUp(t);
    t.mock.method(engine, 'start', () => Promise.reject(new Error('no s3cret')));
    await assert.rejects(client.start(), new Error('no ***'));
  });
});
