/** Each line that an isolated plugin writes is logged or counted. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { Output } from '../../config/plugins/isolate/output.ts';

test('every line of a plugin is logged or counted, and a long one is clipped', async () => {
  const logged: string[] = [];
  const stream = new PassThrough();
  new Output((line) => logged.push(line)).read(stream);
  stream.end(`${'x'.repeat(2000)}\n${Array.from({ length: 2000 }, (_, i) => `${i}\n`).join('')}without an end`);
  await once(stream, 'close');
  const dropped = logged.map((line) => Number(/^(\d+) more lines were dropped$/.exec(line)?.[1] ?? 0));
  const written = dropped.filter((count) => count === 0).length;
  assert.equal(logged[0], `${'x'.repeat(1000)}…`);
  assert.ok(written >= 100 && written < 2002, String(written));
  assert.equal(written + dropped.reduce((sum, count) => sum + count, 0), 2002);
});
