/** Cached answers are kept for their time, within their bounds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { CacheEntries } from '../../../builtins/shared/cache-entries.ts';

function setUp(bounds: { entries?: number; bytes?: number } = {}) {
  const clock = { now: 1_700_000_000_000 };
  return { clock, cache: new CacheEntries<string>({ ...bounds, now: () => clock.now }) };
}

/** The value that is found, if there is one. */
function valueAt(cache: CacheEntries<string>, key: string): string | undefined {
  return cache.get(key)?.value;
}

const terms = { ttl: 1000, size: 10 };

describe('an entry', () => {
  it('says for how long it will be found yet, which is never none', () => {
    const { cache, clock } = setUp();
    cache.set('a', 'A', { ttl: 1000, size: 1 });
    clock.now += 0.9;
    assert.deepEqual(cache.get('a'), { value: 'A', ttl: 1000, isGood: true });
    clock.now += 998.5;
    assert.deepEqual(cache.get('a'), { value: 'A', ttl: 1, isGood: true });
    clock.now += 1;
    assert.equal(cache.get('a'), undefined);
  });

  it('is found no longer as good, and found still, for as long as it is wanted', () => {
    const { cache, clock } = setUp();
    cache.set('a', 'A', { ttl: 1000, goodFor: 100, staleFor: 500, size: 1 });
    const found = () => cache.get('a');
    clock.now += 99;
    assert.deepEqual(found(), { value: 'A', ttl: 901, isGood: true });
    clock.now += 1;
    assert.deepEqual(found(), { value: 'A', ttl: 900, isGood: false });
    clock.now += 1399;
    assert.deepEqual(found(), { value: 'A', ttl: -499, isGood: false });
    clock.now += 1;
    assert.equal(found(), undefined);
  });

  it('may have a name that members of Object have', () => {
    const { cache } = setUp();
    assert.deepEqual([valueAt(cache, '__proto__'), valueAt(cache, 'constructor')], [undefined, undefined]);
    cache.set('__proto__', 'A', terms);
    assert.equal(valueAt(cache, '__proto__'), 'A');
  });
});

describe('bounds', () => {
  it('are 10,000 entries and 64 MiB when nothing else is said', () => {
    const { cache } = setUp();
    for (let i = 0; i < 10_100; i++) cache.set(`key ${i}`, 'x', { ttl: 1000, size: 1 });
    assert.equal(cache.size, 10_000);
    assert.deepEqual([valueAt(cache, 'key 99'), valueAt(cache, 'key 100')], [undefined, 'x']);

    const byBytes = setUp().cache;
    const mebibyte = 1024 * 1024;
    byBytes.set('a', 'x', { ttl: 1000, size: 8 * mebibyte });
    assert.equal(byBytes.size, 0);
    for (let i = 0; i < 100; i++) byBytes.set(String(i).padStart(2, '0'), 'x', { ttl: 1000, size: mebibyte - 4 });
    assert.deepEqual([byBytes.size, byBytes.bytes], [64, 64 * mebibyte]);
  });
});

it('answers as a plain list in the order of use does', () => {
  interface Row {
    key: string;
    value: string;
    weight: number;
    end: number;
  }
  const key = fc.integer({ min: 0, max: 9 }).map((n) => 'k'.repeat(n));
  const ms = fc.oneof(fc.constant(0), fc.integer({ min: -5, max: 20 }));
  const size = fc.integer({ min: 1, max: 60 });
  const step = fc.oneof(
    fc.record({ key, ms }),
    fc.record({ key, ms, terms: fc.record({ ttl: fc.integer({ min: 1, max: 60 }), size }) }),
  );
  const bounds = fc.record({ entries: fc.integer({ min: 1, max: 6 }), bytes: fc.integer({ min: 8, max: 400 }) });
  fc.assert(
    fc.property(bounds, fc.array(step, { maxLength: 150 }), ({ entries, bytes }, steps) => {
      const { cache, clock } = setUp({ entries, bytes });
      let rows: Row[] = [];
      let elapsed = 0;
      const weigh = () => rows.reduce((sum, row) => sum + row.weight, 0);
      for (const [turn, action] of steps.entries()) {
        clock.now += action.ms;
        elapsed += Math.max(0, action.ms);
        const row = rows.find((candidate) => candidate.key === action.key);
        rows = rows.filter((candidate) => candidate !== row);
        if ('terms' in action) {
          const weight = action.terms.size + 2 * action.key.length;
          const kept = 8 * weight <= bytes;
          const value = `value ${turn}`;
          cache.set(action.key, value, action.terms);
          if (kept) rows.push({ key: action.key, value, weight, end: elapsed + action.terms.ttl });
          while (rows.length > entries || weigh() > bytes) rows.shift();
        } else {
          const live = row !== undefined && elapsed < row.end ? row : undefined;
          assert.equal(valueAt(cache, action.key), live?.value);
          rows.push(...(live === undefined ? [] : [live]));
        }
        assert.deepEqual([cache.size, cache.bytes], [rows.length, weigh()]);
        assert.ok(cache.size <= entries && cache.bytes <= bytes);
      }
    }),
    { numRuns: 1000 },
  );
});
