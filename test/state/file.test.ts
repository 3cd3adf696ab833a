/** State in a file does what a map does, over restarts. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { contract } from './contract.ts';
import { engineOn, folder, put, started, watched } from './file-setup.ts';

describe('state in a file', () => {
  contract(async () => {
    const directory = await mkdtemp(join(tmpdir(), 'state-file-'));
    const { engine } = engineOn(join(directory, 'state'));
    await engine.start();
    let areas = 0;
    return {
      area: () => engine.area(`area ${areas++}`),
      close: async () => {
        await engine.close();
        await rm(directory, { recursive: true });
      },
    };
  });

  it('outlives the engine, limits left out', async (t) => {
    const path = join(await folder(t), 'state');
    const first = await started(t, path);
    const [one, other] = [first.engine.area('one'), first.engine.area('an/other')];
    await one.compareAndSet('durable', undefined, 'a', { durable: true });
    await one.compareAndSet('not durable', undefined, 'b\n"\u2028\ud83d');
    await other.compareAndSet('durable', undefined, 'c', { ttl: 1e9 });
    await other.compareAndSet('gone', undefined, 'd');
    await other.compareAndSet('gone', 'd', undefined);
    await one.takeTokens('bucket', { max: 5, window: 1e9 }, 5);
    await first.engine.close();
    const { engine } = await started(t, path);
    const values = ['durable', 'not durable', 'gone'].map((key) => engine.area('one').get(key));
    assert.deepEqual(await Promise.all(values), ['a', 'b\n"\u2028\ud83d', undefined]);
    assert.equal(await engine.area('an/other').get('durable'), 'c');
    assert.equal(await engine.area('an/other').get('gone'), undefined);
    assert.equal((await engine.area('one').takeTokens('bucket', { max: 5, window: 1e9 })).left, 4);
    assert.deepEqual(engine.doubts(), []);
  });

  it('forgets what ended meanwhile, and keeps the end of what did not', async (t) => {
    const path = join(await folder(t), 'state');
    let now = 1000;
    const first = await started(t, path, { now: () => now });
    await first.engine.area('a').compareAndSet('short', undefined, '1', { ttl: 10 });
    await first.engine.area('a').compareAndSet('long', undefined, '1', { ttl: 20 });
    await first.engine.area('a').compareAndSet('over', undefined, '1', { ttl: 0 });
    await first.engine.close();
    now = 1010;
    const { engine } = await started(t, path, { now: () => now });
    assert.equal(await engine.area('a').get('short'), undefined);
    assert.equal(await engine.area('a').get('over'), undefined);
    assert.equal(await engine.area('a').get('long'), '1');
    now = 1020;
    assert.equal(await engine.area('a').get('long'), undefined);
  });

  it('is a text that says what was changed, for nobody else to read', async (t) => {
    const path = join(await folder(t), 'state');
    const { engine } = await started(t, path, { now: () => 1000 });
    await engine.area('x402').compareAndSet('0xab', undefined, 'paid', { durable: true, ttl: 500 });
    await engine.area('x402').compareAndSet('0xab', 'paid', undefined, { durable: true });
    await engine.close();
    const text = await readFile(path, 'utf8');
    assert.deepEqual(text.split('\n').slice(0, -1), [
      '90425e53 0 ["signed-data-proxy state",2]',
      '019addf9 0000000000000149 []',
      'd85806ed 70 [["x402/0xab","paid",1500]]',
      'f0b673cd 110 [["x402/0xab",null,null]]',
    ]);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    assert.equal((await stat(`${path}.lock`)).mode & 0o777, 0o600);
  });

  it('shares few fdatasyncs among many changes, and needs none for those that may be lost', async (t) => {
    const path = join(await folder(t), 'state');
    const counts: Record<string, number> = {};
    const files = watched((operation) => {
      counts[operation] = (counts[operation] ?? 0) + 1;
    });
    const { engine } = await started(t, path, { files });
    const area = engine.area('a');
    const rounds = async (options: { durable?: boolean }) => {
      counts.datasync = 0;
      for (let round = 0; round < 4; round++) {
        const keys = Array.from({ length: 250 }, (_, index) => `${round} ${index} ${options.durable}`);
        await Promise.all(keys.map((key) => area.compareAndSet(key, undefined, '1', options)));
      }
      return counts.datasync;
    };
    assert.equal(await rounds({ durable: true }), 4);
    assert.equal(await rounds({}), 0);
  });

  it('is not written for a change that changes nothing, such as a look once a second', async (t) => {
    const path = join(await folder(t), 'state');
    const { engine } = await started(t, path);
    const { size } = await stat(path);
    assert.equal(await engine.area('a').compareAndSet('probe', undefined, undefined), undefined);
    await engine.area('a').compareAndSet('other', undefined, undefined, { durable: true });
    const text = await readFile(path, 'utf8');
    assert.ok(text.length > size && text.includes('a/other') && !text.includes('a/probe'), text);
  });

  it('is left alone by an engine that was closed, whoever still asks', async (t) => {
    const path = join(await folder(t), 'state');
    const first = await started(t, path);
    await first.engine.close();
    const second = await started(t, path);
    await put(second.engine.area('a'), 'key', 'of the second');
    const late = { message: 'the state file is not open' };
    for (let times = 0; times < 3; times++)
      await assert.rejects(first.engine.area('a').compareAndSet('late', undefined, 'x', { durable: true }), late);
    await second.engine.close();
    const { engine } = await started(t, path);
    assert.equal(await engine.area('a').get('key'), 'of the second');
    assert.deepEqual(first.logged, []);
  });

  it('writes the rest of what the system wrote in part', async (t) => {
    const path = join(await folder(t), 'state');
    const files = watched(() => undefined);
    const open: typeof files.open = async (...words) => {
      const handle = await files.open(...words);
      const write = handle.write.bind(handle);
      const some = (bytes: Uint8Array, from: number, length: number, at: number) =>
        write(bytes, from, Math.min(length, 7), at);
      return Object.assign(handle, { write: some });
    };
    const { engine } = await started(t, path, { files: { ...files, open } });
    await put(engine.area('a'), 'key', 'x'.repeat(100));
    await engine.close();
    const again = await started(t, path);
    assert.equal(await again.engine.area('a').get('key'), 'x'.repeat(100));
    assert.deepEqual(again.logged, []);
  });

  it('does what a map does, wherever it is closed and opened again', async () => {
    const key = fc.constantFrom('a', 'b', 'ä/', '');
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.tuple(key, fc.option(fc.string(), { nil: undefined }), fc.boolean()) },
      { weight: 1, arbitrary: fc.constantFrom('closed' as const, 'killed' as const) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const directory = await mkdtemp(join(tmpdir(), 'state-file-'));
        let path = join(directory, '0');
        let { engine } = engineOn(path);
        await engine.start();
        const model = new Map<string, string>();
        for (const [index, taken] of steps.entries()) {
          if (typeof taken === 'string') {
            const copy = join(directory, `${index + 1}`);
            // What a process that is killed leaves is what is in the file then.
            if (taken === 'killed') await writeFile(copy, await readFile(path));
            await engine.close();
            if (taken === 'killed') path = copy;
            engine = engineOn(path).engine;
            await engine.start();
          } else {
            const [name, next] = taken;
            const area = engine.area('a');
            assert.equal(await area.compareAndSet(name, model.get(name), next, { durable: true }), undefined);
            if (next === undefined) model.delete(name);
            else model.set(name, next);
          }
          for (const name of ['a', 'b', 'ä/', '']) assert.equal(await engine.area('a').get(name), model.get(name));
        }
        await engine.close();
        await rm(directory, { recursive: true });
      }),
      { numRuns: 25 },
    );
  });
});
