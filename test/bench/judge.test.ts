/** The benchmark's verdict follows from its figures: medians and spreads. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isSlower, median, quantile, ratios, spread, table } from '../../tools/bench/figures.ts';

describe('medians and spreads', () => {
  it('a median of an even number of values lies between two', () => {
    assert.deepEqual([median([3, 1, 2]), median([4, 1, 3, 2]), median([7])], [2, 2.5, 7]);
    assert.ok(Number.isNaN(median([])));
  });

  it('a quantile lies between neighbours in proportion', () => {
    const values = [50, 10, 40, 20, 30];
    assert.deepEqual(
      [0, 0.25, 0.5, 0.625, 1].map((part) => quantile(values, part)),
      [10, 20, 30, 35, 50],
    );
  });

  it('eight of ten values are within a spread', () => {
    assert.equal(spread([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]), '6.00 (2.00–10.00)');
  });

  it('each value is compared with the one of its round', () => {
    assert.deepEqual(ratios([2, 9, 4], [1, 3, 8]), [2, 3, 0.5]);
  });
});

describe('the verdict', () => {
  const rounds = (slow: number, fast: number, by = 1.2) => [
    ...Array.from({ length: slow }, () => by),
    ...Array.from({ length: fast }, () => 0.95),
  ];

  it('is for more than 8 %, in four of five rounds', () => {
    assert.equal(isSlower(rounds(20, 0, 1.09)), true);
    assert.equal(isSlower(rounds(20, 0, 1.08)), false);
    assert.equal(isSlower(rounds(17, 3)), true);
  });

  it('is not for a median that too many rounds contradict', () => {
    assert.equal(isSlower(rounds(15, 5)), false);
    assert.equal(isSlower(rounds(11, 9, 5)), false);
  });

  it('is not for one round that took very long', () => assert.equal(isSlower([100, ...rounds(0, 19)]), false));
});

describe('tables', () => {
  it('are Markdown', () => assert.equal(table(['a', 'b'], [['1', 'x']]), '| a | b |\n|---|---|\n| 1 | x |'));
});
