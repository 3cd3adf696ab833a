/** State in a file does what a map does, over restarts and for several engines. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { contract } from './contract.ts';
import { engineOn, FREE, folder, held, put, SET_BACK, started } from './file-setup.ts';

const FULL = { message: 'no room is left in the state file for another key' };

describe('state in a file', async () => {
  const directory = await folder(suite);
  contract(async () => {
    const engine = engineOn(join(directory, 'state'));
    await engine.start();
    let areas = 0;
    return { area: () => engine.area(`area ${areas++}`), close: () => engine.close() };
  });

  it('outlives the engine, limits included, for nobody else to read', async (t) => {
    const path = join(await folder(t), 'state');
    const first = await started(t, path);
    const [one, other] = [first.area('one'), first.area('an/other')];
    await one.compareAndSet('durable', undefined, 'a', { durable: true });
    await one.compareAndSet('odd', undefined, 'b\n"\u2028\ud83d');
    await other.compareAndSet('durable', undefined, 'c', { ttl: 1e9 });
    await put(other, 'gone', 'd');
    await put(other, 'gone', undefined);
    await one.takeTokens('bucket', { max: 5, window: 1e9 }, 5);
    await first.close();
    await rm(`${path}-lock`);
    const engine = await started(t, path);
    assert.deepEqual(await Promise.all(['durable', 'odd', 'gone'].map((key) => engine.area('one').get(key))), [
      'a',
      'b\n"\u2028\ud83d',
      undefined,
    ]);
    assert.equal(await engine.area('an/other').get('durable'), 'c');
    assert.equal(await engine.area('an/other').get('gone'), undefined);
    assert.equal((await engine.area('one').takeTokens('bucket', { max: 5, window: 1e9 })).granted, 0);
    assert.deepEqual(engine.doubts(), []);
    for (const name of [path, `${path}-lock`]) assert.equal((await stat(name)).mode & 0o777, 0o600);
  });

  it('undoes nothing when a process that opens the file takes an older commit for the newest', async (t) => {
    const path = join(await folder(t), 'state');
    const engine = await started(t, path);
    const area = engine.area('a');
    for (const commits of [1, 2, 3]) {
      for (const key of ['b', 'c', 'd']) await put(area, `${key}${commits}`, 'kept');
      assert.equal(spawnSync(process.execPath, ['-e', SET_BACK, `${path}-lock`, `${commits}`]).status, 0);
      await Promise.all(['e', 'f'].map((key) => area.compareAndSet(`${key}${commits}`, undefined, 'kept')));
      for (const key of ['b', 'c', 'd', 'e', 'f'])
        assert.equal(await area.get(`${key}${commits}`), 'kept', `${key}${commits}`);
    }
  });

  it('waits for no lock that is free, at its close either, although the wake-up went to a process that was killed', async (t) => {
    const path = join(await folder(t), 'state');
    const engine = await started(t, path);
    t.after(await held(path));
    const done = Promise.all([engine.area('a').compareAndSet('b', undefined, 'kept'), engine.close()]);
    assert.deepEqual(await once(spawn(process.execPath, ['-e', FREE, `${path}-lock`]), 'exit'), [0, null]);
    assert.deepEqual(await done, [undefined, undefined]);
  });

  it('forgets what ended meanwhile, and keeps the end of what did not', async (t) => {
    const path = join(await folder(t), 'state');
    let now = 1000;
    const first = await started(t, path, { now: () => now });
    for (const [key, ttl] of Object.entries({ short: 10, long: 20, over: 0 }))
      await first.area('a').compareAndSet(key, undefined, '1', { ttl });
    await first.close();
    const engine = await started(t, path, { now: () => now });
    const kept = () => Promise.all(['short', 'long', 'over'].map((key) => engine.area('a').get(key)));
    now = 1010;
    assert.deepEqual(await kept(), [undefined, '1', undefined]);
    now = 1020;
    assert.deepEqual(await kept(), [undefined, undefined, undefined]);
  });

  it('is left alone by an engine that was closed, whoever still asks', async (t) => {
    const path = join(await folder(t), 'state');
    const first = await started(t, path);
    await first.close();
    const late = { message: 'the state file is not open' };
    await assert.rejects(first.area('a').get('late'), late);
    await assert.rejects(first.area('a').compareAndSet('late', undefined, 'x'), late);
    await assert.rejects(first.area('a').takeTokens('late', { max: 5, window: 1 }), late);
  });

  it('keeps keys apart however long they are, and whatever they hold', async (t) => {
    const engine = await started(t, join(await folder(t), 'state'));
    const long = 'x'.repeat(5000);
    const keys = ['', '/', '#', '\0', '\ud83d', '\ufffd', 'x'.repeat(490), 'x'.repeat(491), `${long}0`, `${long}1`];
    for (const name of ['a', 'a/', 'a#'])
      for (const key of keys)
        assert.equal(await engine.area(name).compareAndSet(key, undefined, `${name} ${key}`), undefined);
    for (const name of ['a', 'a/', 'a#'])
      for (const key of keys) assert.equal(await engine.area(name).get(key), `${name} ${key}`);
  });
});

describe('the room in a state file', () => {
  const room = { keys: 20, bytes: 1e9 };

  it('is that of so many keys; what has ended makes room, and limits that find none share one', async (t) => {
    let now = 1000;
    const engine = await started(t, join(await folder(t), 'state'), { now: () => now, room });
    const area = engine.area('a');
    for (let n = 0; n < 20; n++) await area.compareAndSet(`${n}`, undefined, '1', n < 10 ? {} : { ttl: 10 });
    await assert.rejects(area.compareAndSet('more', undefined, '1'), FULL);
    await put(area, '0', '2');
    now = 1010;
    for (let n = 0; n < 10; n++) await put(area, `more ${n}`, '1');
    await assert.rejects(area.compareAndSet('more', undefined, '1'), FULL);
    assert.deepEqual([await area.get('0'), await area.get('9')], ['2', '1']);
    const take = async (key: string) => (await area.takeTokens(key, { max: 2, window: 1e9 })).granted;
    for (let n = 0; n < 20; n++) assert.equal(await take(`${n}`), 1);
    assert.deepEqual([await take('x'), await take('y'), await take('z'), await take('0')], [1, 1, 0, 1]);
  });

  it('is that of so many bytes, and a file whose entries end does not grow', async (t) => {
    let now = 1000;
    const path = join(await folder(t), 'state');
    const engine = await started(t, path, { now: () => now, room: { keys: 1e6, bytes: 400_000 } });
    const area = engine.area('a');
    const write = async (from: number) => {
      for (let n = from; n < from + 3000; n += 30) {
        now += 30;
        const keys = Array.from({ length: 30 }, (_, index) => `${n + index}`);
        await Promise.all(keys.map((key) => area.compareAndSet(key, undefined, 'x'.repeat(1000), { ttl: 100 })));
      }
      return (await stat(path)).size;
    };
    const size = await write(0);
    assert.ok((await write(3000)) <= size + 100_000 && size < 1_000_000, `${size}`);
    const large = Array.from({ length: 100 }, (_, n) => area.compareAndSet(`${n}`, undefined, 'x'.repeat(10_000)));
    const results = await Promise.allSettled(large);
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason.message] : []));
    assert.deepEqual([...new Set(refused)], [FULL.message]);
    assert.ok((await stat(path)).size < 2_000_000);
  });
});
