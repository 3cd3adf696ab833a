/** A damaged state file is noticed at the start, and nothing is made up. */
import assert from 'node:assert/strict';
import { readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { open as lmdb } from 'lmdb';
import { StateUnavailable } from '../../plugins-sdk/state.ts';
import { engineOn, folder, put, started } from './file-setup.ts';

const refusal = (path: string) =>
  new Error(
    `settings.state: ${path} is damaged, or no state file of this service: ` +
      'restore it from a backup, or move it away: then payments made before now are refused',
  );

/** A file with so many entries, closed. */
async function filled(t: TestContext, entries = 200): Promise<string> {
  const path = join(await folder(t), 'state');
  const engine = await started(t, path);
  for (let n = 0; n < entries; n++) await put(engine.area('x402'), `payment ${n}`, `redeemed ${n}`);
  await engine.close();
  return path;
}

describe('a state file that is damaged', () => {
  it('is refused when it has lost its end', async (t) => {
    const path = await filled(t);
    const { length } = await readFile(path);
    for (const part of [0.1, 0.5, 0.9]) {
      await truncate(path, Math.floor(length * part));
      await assert.rejects(engineOn(path).start(), refusal(path));
    }
  });

  it('is told from one that could not be read for want of time, memory or threads', async (t) => {
    const path = await filled(t, 1);
    const { execPath } = process;
    t.after(() => Object.assign(process, { execPath }));
    process.execPath = `${path}-check`;
    await writeFile(process.execPath, '#!/bin/sh\nkill -s ABRT $$', { mode: 0o755 });
    const why = 'time, memory or threads are short; if not, the file is damaged';
    await assert.rejects(
      engineOn(path).start(),
      new Error(`settings.state: ${path} could not be checked (SIGABRT): ${why}`),
    );
  });

  it('refuses writes when it has lost the list of its free pages', async (t) => {
    const path = join(await folder(t), 'state');
    const first = await started(t, path);
    for (let n = 0; n < 40; n++) await put(first.area('x402'), `payment ${n}`, 'x'.repeat(300 + (n % 7) * 900));
    await first.close();
    const { length } = await readFile(path);
    await truncate(path, length - 4096);
    const engine = await started(t, path);
    // Without its end, the library would end the process.
    const refused = new StateUnavailable(`the state file ${path} cannot be written: MDB_BAD_TXN`);
    await assert.rejects(put(engine.area('x402'), 'payment', 'redeemed'), refused);
  });

  it('is refused where an entry or a page of it was changed', async (t) => {
    const path = await filled(t);
    const bytes = await readFile(path);
    for (const text of ['payment 77"', 'redeemed 77"']) {
      const copy = Buffer.from(bytes);
      for (let at = copy.indexOf(text); at !== -1; at = copy.indexOf(text, at + 1)) copy[at] = 0x71;
      await writeFile(path, copy);
      await assert.rejects(engineOn(path).start(), refusal(path), text);
    }
    // The two pages that say where all else is stay: the library knows what they should be.
    for (const fill of [0, 255]) {
      await writeFile(path, Buffer.concat([bytes.subarray(0, 8192), Buffer.alloc(bytes.length - 8192, fill)]));
      await assert.rejects(engineOn(path).start(), refusal(path), `${fill}`);
    }
    await writeFile(path, bytes);
    const engine = await started(t, path);
    assert.equal(await engine.area('x402').get('payment 77'), 'redeemed 77');
  });

  it('is refused when it is something else, and new when it is empty', async (t) => {
    const path = join(await folder(t), 'state');
    for (const content of ['settings:\n', '\0'.repeat(8192), '90425e53 0 ["signed-data-proxy state",2]\n']) {
      await writeFile(path, content);
      await assert.rejects(engineOn(path).start(), refusal(path));
      assert.equal(await readFile(path, 'utf8'), content);
    }
    await writeFile(path, '');
    assert.equal(await (await started(t, path)).area('a').get('a'), undefined);
  });

  it('is none that lacks databases, since its first process was killed, or pages at its end, which were never written', async (t) => {
    const path = join(await folder(t), 'state');
    await lmdb({ path, noSubdir: true }).close();
    const engine = await started(t, path);
    const area = engine.area('a');
    // A transaction that takes the end of the file, and frees it again.
    await Promise.all([area.compareAndSet('b', undefined, 'x'.repeat(20_000)), put(area, 'c', 'kept')]);
    for (let round = 0; round < 5; round++)
      await Promise.all([
        area.compareAndSet(`d${round}`, undefined, 'x'.repeat(20_000)),
        area.compareAndSet(`d${round}`, 'x'.repeat(20_000), undefined),
      ]);
    await engine.close();
    const env = lmdb({ path, noSubdir: true, readOnly: true });
    const { lastPageNumber, pageSize } = Object(env.getStats());
    await env.close();
    assert.ok((await stat(path)).size < (lastPageNumber + 1) * pageSize, 'the file is short');
    assert.equal(await (await started(t, path)).area('a').get('c'), 'kept');
  });

  it('is told of by an engine that meets the damage later', async (t) => {
    const path = await filled(t, 2);
    const engine = await started(t, path);
    const bytes = await readFile(path);
    for (let at = bytes.indexOf('redeemed 1"'); at !== -1; at = bytes.indexOf('redeemed 1"', at + 1)) bytes[at] = 0x71;
    await writeFile(path, bytes);
    const damaged = new StateUnavailable('the state file is damaged at the key x402/"payment 1"');
    await assert.rejects(engine.area('x402').get('payment 1'), damaged);
    await assert.rejects(engine.area('x402').compareAndSet('payment 1', undefined, 'sold twice'), damaged);
  });
});
