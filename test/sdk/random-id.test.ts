/** IDs are random, and keep nothing but themselves. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { randomId } from '../../lib/eth/hex.ts';

it('makes 32 random bytes as hex, each time others', () => {
  const ids = Array.from({ length: 1000 }, randomId);
  assert.equal(new Set(ids).size, 1000);
  for (const id of ids) assert.match(id, /^0x[0-9a-f]{64}$/);
});

it('an id that is kept keeps nothing but itself', () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const heap = () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const before = heap();
  // So many that a few MB, by which the rest of the process may grow meanwhile, are little for each.
  const kept: string[] = [];
  for (let i = 0; i < 1_024_000; i++) {
    const id = randomId();
    if (i % 128 === 0) kept.push(id);
  }
  const bytes = (heap() - before) / kept.length;
  assert.ok(bytes < 1024, `${bytes} bytes each`);
});
