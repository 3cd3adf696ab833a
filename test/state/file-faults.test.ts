/** A state file that cannot be written is told, and one that grows is packed. */
import assert from 'node:assert/strict';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { StateUnavailable } from '../../plugins-sdk/index.ts';
import { folder, type Look, type Opened, put, started, systemError, watched } from './file-setup.ts';

const DURABLE = { durable: true };

interface Broken extends Opened {
  readonly path: string;
  /** The operations that fail, as they are called, or with the end of the file's name; more can be added. */
  readonly faults: Map<string, string>;
  /** All operations since. */
  readonly done: string[];
  now: number;
}

/** An engine on a file system in which operations can be made to fail. */
async function breakable(t: TestContext, known?: string): Promise<Broken> {
  const path = known ?? join(await folder(t), 'state');
  const faults = new Map<string, string>();
  const done: string[] = [];
  const look: Look = (operation, file) => {
    const name = file === path ? operation : `${operation} ${file.slice(path.length) || 'directory'}`;
    done.push(name);
    const code = faults.get(name);
    if (code !== undefined) throw systemError(code);
  };
  const clock = { now: 1_000_000 };
  const opened = await started(t, path, { files: watched(look), now: () => clock.now });
  done.length = 0;
  return Object.assign(clock, { ...opened, path, faults, done });
}

describe('a state file that cannot be written', () => {
  // What was written to `.new` is the file from then on, so that its operations are still seen under that name.
  for (const [operation, code] of [
    ['datasync .new', 'EIO'],
    ['write .new', 'ENOSPC'],
    ['write .new', 'EDQUOT'],
  ] as const) {
    it(`confirms nothing from an error of ${operation.slice(0, -5)} on (${code}), and goes on in a new file`, async (t) => {
      const broken = await breakable(t);
      const { engine, faults, path, logged } = broken;
      const area = engine.area('a');
      await put(area, 'before', '1');
      faults.set(operation, code);
      const error = new StateUnavailable(`the state file ${path} cannot be written: ${code}`);
      const keys = Array.from({ length: 10 }, (_, index) => `${index}`);
      await Promise.all(keys.map((key) => assert.rejects(area.compareAndSet(key, undefined, '1', DURABLE), error)));
      await assert.rejects(area.compareAndSet('late', undefined, '1', DURABLE), error);
      await assert.rejects(area.compareAndSet('not durable', undefined, '1'), error);
      await assert.rejects(area.compareAndSet('before', 'wrong', '1'), error);
      assert.deepEqual(await Promise.all(['before', '9', 'late'].map((key) => area.get(key))), ['1', '1', undefined]);
      faults.clear();
      broken.now += 1000;
      await put(area, 'after', '1');
      assert.deepEqual(logged, [
        ['error', 'the state file cannot be written: what needs it is refused', { path, error: code }],
        ['info', 'the state file can be written again', { path }],
      ]);
      await engine.close();
      const again = await started(t, path);
      const values = ['before', '0', '9', 'late', 'after'].map((key) => again.engine.area('a').get(key));
      assert.deepEqual(await Promise.all(values), ['1', '1', '1', undefined, '1']);
      assert.deepEqual(again.logged, []);
    });
  }

  it('is tried again once a second, when something needs it', async (t) => {
    const broken = await breakable(t);
    const { engine, faults, done } = broken;
    const area = engine.area('a');
    faults.set('write .new', 'ENOSPC');
    await assert.rejects(area.compareAndSet('a', undefined, '1', DURABLE), StateUnavailable);
    const attempts = async () => {
      done.length = 0;
      const calls = Array.from({ length: 10 }, () =>
        assert.rejects(area.compareAndSet('b', undefined, '1'), StateUnavailable),
      );
      await Promise.all(calls);
      await assert.rejects(area.compareAndSet('b', undefined, '1'), StateUnavailable);
      return done.filter((operation) => operation === 'open .new').length;
    };
    const counts = [await attempts(), await attempts()];
    broken.now += 999;
    counts.push(await attempts());
    broken.now += 1;
    counts.push(await attempts());
    // A clock that was set back holds nothing up.
    broken.now -= 500_000;
    counts.push(await attempts());
    assert.deepEqual(counts, [1, 0, 0, 1, 1]);
    assert.deepEqual(await readdir(join(broken.path, '..')), ['state', 'state.lock']);
  });

  it('is written anew when the engine is closed, with what was decided', async (t) => {
    const { engine, faults, path } = await breakable(t);
    faults.set('write .new', 'ENOSPC');
    await assert.rejects(engine.area('a').compareAndSet('a', undefined, '1', DURABLE), StateUnavailable);
    faults.clear();
    await engine.close();
    const again = await started(t, path);
    assert.equal(await again.engine.area('a').get('a'), '1');
    assert.deepEqual(again.logged, []);
  });

  it('tells who closes it nothing, and lets others in', async (t) => {
    const { engine, faults, path } = await breakable(t);
    await put(engine.area('a'), 'a', '1');
    faults.set('write .new', 'ENOSPC');
    await assert.rejects(engine.area('a').compareAndSet('b', undefined, '1', DURABLE), StateUnavailable);
    await engine.close();
    assert.equal(await (await started(t, path)).engine.area('a').get('a'), '1');
  });

  it('confirms nothing when it cannot be sure that the new file has taken the place of the old one', async (t) => {
    const broken = await breakable(t);
    const { engine, faults } = broken;
    const area = engine.area('a');
    faults.set('datasync .new', 'EIO').set('sync directory', 'EIO');
    await assert.rejects(area.compareAndSet('a', undefined, '1', DURABLE), StateUnavailable);
    faults.delete('datasync .new');
    broken.now += 1000;
    await assert.rejects(area.compareAndSet('b', undefined, '1', DURABLE), StateUnavailable);
    faults.clear();
    broken.now += 1000;
    await put(area, 'b', '1');
  });
});

describe('a state file that grows', () => {
  const large = 'x'.repeat(200_000);

  it('is written anew when most of it is outdated, and no sooner', async (t) => {
    const { engine, path, done } = await breakable(t);
    const area = engine.area('a');
    await area.compareAndSet('ended', undefined, large, { ttl: 0 });
    await put(area, 'kept', 'y');
    const sizes = [];
    for (let count = 0; count < 12; count++) {
      await put(area, 'a', `${count}${large}`);
      sizes.push(done.filter((operation) => operation === 'rename .new').length);
    }
    await engine.close();
    assert.deepEqual(sizes, [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2]);
    assert.ok((await stat(path)).size < 500_000);
    const { engine: again } = await started(t, path);
    assert.equal(await again.area('a').get('a'), `11${large}`);
    assert.equal(await again.area('a').get('kept'), 'y');
  });

  it('is not written anew by the first change after a start, unless most of it is outdated', async (t) => {
    const { engine, path } = await breakable(t);
    for (let count = 0; count < 8; count++) await put(engine.area('a'), `${count}`, large);
    await engine.close();
    const renamed = async (changes: number) => {
      const { engine: again, done } = await breakable(t, path);
      for (let count = 0; count < changes; count++) await put(again.area('a'), 'other', `${count}${large}`);
      await again.close();
      return done.filter((operation) => operation === 'rename .new').length;
    };
    assert.deepEqual([await renamed(3), await renamed(20), await renamed(1), await renamed(5)], [0, 0, 0, 1]);
  });

  it('stays as it is where there is no room for another', async (t) => {
    const { engine, path, faults, logged } = await breakable(t);
    const area = engine.area('a');
    faults.set('rename .new', 'ENOSPC');
    for (let count = 0; count < 12; count++) await put(area, 'a', `${count}${large}`);
    assert.deepEqual(logged, [['warn', 'the state file cannot be made smaller', { path, error: 'ENOSPC' }]]);
    await engine.close();
    assert.ok((await stat(path)).size > 2_000_000);
    assert.deepEqual(await readdir(join(path, '..')), ['state', 'state.lock']);
    assert.equal(await (await started(t, path)).engine.area('a').get('a'), `11${large}`);
  });

  it('confirms nothing when it is unsure which of the two is there', async (t) => {
    const { engine, path, faults } = await breakable(t);
    const area = engine.area('a');
    faults.set('sync directory', 'EIO');
    for (let count = 0; count < 6; count++) await put(area, 'a', `${count}${large}`);
    const error = new StateUnavailable(`the state file ${path} cannot be written: EIO`);
    await assert.rejects(area.compareAndSet('b', undefined, '1', DURABLE), error);
    await assert.rejects(area.compareAndSet('b', '1', '2', DURABLE), error);
    faults.clear();
    await engine.close();
    assert.equal(await (await started(t, path)).engine.area('a').get('b'), '1');
  });

  it('takes no more keys than there is room for, and keeps those that it has', async (t) => {
    const path = join(await folder(t), 'state');
    let now = 0;
    const { engine } = await started(t, path, { capacity: 2, now: () => now });
    const area = engine.area('a');
    await area.compareAndSet('a', undefined, '1', { ttl: 10 });
    await area.compareAndSet('b', undefined, '1');
    const full = new StateUnavailable('no room for another key among those that are still live');
    await assert.rejects(engine.area('b').compareAndSet('c', undefined, '1', DURABLE), full);
    await area.compareAndSet('b', '1', '2');
    now = 10;
    await area.compareAndSet('c', undefined, '1');
    await engine.close();
    assert.doesNotMatch(await readFile(path, 'utf8'), /"b\/c"/);
    const again = await started(t, path, { capacity: 2, now: () => now });
    assert.deepEqual([await again.engine.area('a').get('b'), await again.engine.area('a').get('c')], ['2', '1']);
    await again.engine.close();
    now = 0;
    const sooner = started(t, path, { capacity: 1, now: () => now });
    const why = 'holds more keys than there is room for: has the clock been set back?';
    await assert.rejects(sooner, new Error(`settings.state: ${path} ${why}`));
  });
});
