/** A file that rolls over gets a name of its own, in order. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { RollingFile } from '../../builtins/audit/rolling-file.ts';
import { folderWith } from '../cli/run.ts';
import { auditLines } from '../support/audit.ts';

it('files that are renamed within one millisecond have names of their own, in their order', async (t) => {
  const folder = await folderWith(t);
  const path = join(folder, 'audit.jsonl');
  const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  const now = Date.now();
  const file = new RollingFile({ path, maxSize: 1, keep: 10, sync: false, log, now: () => now });
  await file.start();
  const time = new Date(now).toISOString();
  for (const n of [1, 2, 3, 4]) await file.append([JSON.stringify({ time, n })]);
  await file.close();
  const [last, ...names] = (await readdir(folder)).toSorted();
  const lines = await Promise.all([...names, last ?? ''].map((name) => auditLines(join(folder, name))));
  assert.deepEqual(lines.flat(), [{ n: 1 }, { n: 2 }, { n: 3 }, { n: 4 }]);
});
