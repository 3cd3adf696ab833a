/** The benchmark's verdict follows from its figures: medians, spreads and profiles. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type CpuProfile, cpuShares, differences, since } from '../../tools/bench/profile.ts';
import { median, quantile, ratios, spreadOf, textOfSpread } from '../../tools/bench/statistics.ts';
import { isSlower } from '../../tools/bench/verdict.ts';

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
    const spread = spreadOf([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    assert.deepEqual(spread, { low: 2, middle: 6, high: 10 });
    assert.equal(textOfSpread(spread), '6.00 (2.00–10.00)');
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

  it('is not for one round that took very long', () => {
    assert.equal(isSlower([100, ...rounds(0, 19)]), false);
  });
});

const frame = (functionName: string, url = '') => ({ functionName, url });

/** A profile of functions, and the microseconds that each took. */
function profile(build: string, times: Readonly<Record<string, number>>): CpuProfile {
  const names = Object.keys(times);
  const urlOf = (name: string) => (name.startsWith('(') ? '' : `file://${build}/dist/kernel/${name}.js`);
  const nodes = names.map((name, i) => ({ id: i + 2, callFrame: frame(name, urlOf(name)) }));
  const root = { id: 1, callFrame: frame('(root)'), children: nodes.map(({ id }) => id) };
  return {
    startTime: 100,
    nodes: [root, ...nodes],
    samples: nodes.map(({ id }) => id),
    timeDeltas: Object.values(times),
  };
}

describe('profiles', () => {
  it('differ by function, whatever folder a build is in, the largest difference first', () => {
    const before = profile('/a', { ask: 1000, sign: 300, left: 50, '(idle)': 9000 });
    const now = profile('/somewhere/else', { ask: 1100, sign: 100, '(garbage collector)': 120, '(idle)': 1 });
    assert.deepEqual(differences(before, now, 10), [
      { name: 'sign kernel/sign.js', before: 30, now: 10 },
      { name: '(garbage collector)', before: 0, now: 12 },
      { name: 'ask kernel/ask.js', before: 100, now: 110 },
      { name: 'left kernel/left.js', before: 5, now: 0 },
    ]);
  });

  it('have shares by part of the program, without the time in which nothing ran', () => {
    const shares = cpuShares(profile('/a', { ask: 60, sign: 15, '(garbage collector)': 25, '(idle)': 500 }));
    assert.deepEqual(shares, [
      ['kernel', 0.75],
      ['garbage collector', 0.25],
    ]);
  });

  it('leave out what was before a moment', () => {
    const { samples, timeDeltas } = since(profile('/a', { start: 50, warm: 30, work: 20, more: 10 }), 200);
    assert.deepEqual({ samples, timeDeltas }, { samples: [4, 5], timeDeltas: [20, 10] });
  });
});
