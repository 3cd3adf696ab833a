/** The clock never goes back. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { steadyClock } from '../../lib/time.ts';

function clockOver(...times: number[]): () => number {
  return steadyClock(() => times.shift() ?? Number.NaN);
}

it('counts from the moment it was made', () => {
  const clock = clockOver(1_700_000_000_000, 1_700_000_000_000, 1_700_000_000_250);
  assert.deepEqual([clock(), clock()], [0, 250]);
});

it('stands still while its source goes back and goes on from there', () => {
  const clock = clockOver(1000, 1500, 200, 200, 230, 1500);
  assert.deepEqual([clock(), clock(), clock(), clock(), clock()], [500, 500, 500, 530, 1800]);
});

it('loses nothing of fractions of a millisecond', () => {
  const clock = clockOver(0.9, 1.4, 1.8, 2.1, 2.9);
  assert.deepEqual([clock(), clock(), clock(), clock()], [1, 1, 2, 2]);
});

it('runs on the monotonic clock of the process when it is given none', () => {
  const clock = steadyClock();
  const first = clock();
  assert.ok(Number.isInteger(first) && first >= 0);
  assert.ok(clock() >= first);
});
