/** Memory stays flat under floods of addresses and cache keys. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { launch } from '../cli/run.ts';

/**
 * The flood runs in a process of its own, so that the heap is that of the service (and of a client that keeps nothing).
 * It prints the bytes of live heap when the bounded stores have had all they hold, and after as much again.
 */
it('memory stays flat under floods of distinct X-Forwarded-For addresses and cache keys', async (t) => {
  const MiB = 1024 * 1024;
  const flood = new URL('../support/flood.ts', import.meta.url).pathname;
  const args = ['--expose-gc', '--import', import.meta.resolve('tsx'), flood];
  const { code, stdout, stderr } = await launch(t, process.execPath, args).ended;
  assert.deepEqual([code, stderr], [0, '']);
  const [before = 0, later = 0]: number[] = JSON.parse(stdout);
  assert.ok(before > MiB && later > MiB, stdout);
  assert.ok(later < before * 1.25, `${(before / MiB).toFixed(1)} MiB became ${(later / MiB).toFixed(1)} MiB`);
});
