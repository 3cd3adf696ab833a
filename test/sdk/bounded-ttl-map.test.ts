/** A bounded map keeps its entries for their time, and never too many. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { BoundedTtlMap } from '../../lib/bounded/bounded-ttl-map.ts';

describe('BoundedTtlMap', () => {
  it('shrinks after a flood, two entries for each new one', () => {
    const map = new BoundedTtlMap<number>(1000);
    for (let i = 0; i < 1000; i++) map.set(`flood ${i}`, i, 100, 0);
    assert.equal(map.size, 1000);
    map.set('after', 0, 1000, 100);
    assert.equal(map.size, 999);
    for (let i = 0; i < 500; i++) map.set(`after ${i}`, i, 100, 100);
    assert.ok(map.size < 502, `${map.size} entries`);
  });

  it('keeps keys that name members of Object', () => {
    const map = new BoundedTtlMap<number>(10);
    assert.equal(map.get('__proto__', 0), undefined);
    assert.equal(map.get('constructor', 0), undefined);
    map.set('__proto__', 1, 10, 0);
    assert.equal(map.get('__proto__', 0), 1);
  });

  it('refuses an end that is NaN and keeps what it had', () => {
    const map = new BoundedTtlMap<number>(1);
    map.set('a', 1, 10, 0);
    assert.throws(() => map.set('a', 2, Number.NaN, 0), new RangeError('expiresAt must be a number, not NaN'));
    assert.equal(map.get('a', 0), 1);
  });

  for (const capacity of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    it(`refuses a capacity of ${capacity}`, () =>
      assert.throws(
        () => new BoundedTtlMap(capacity),
        new RangeError(`capacity must be a positive integer, not ${capacity}`),
      ));
  }

  it('answers as a list of live entries would', () => {
    const key = fc.integer({ min: 0, max: 11 }).map(String);
    const step = fc.oneof(
      fc.record({ do: fc.constant('set' as const), key, ttl: fc.integer({ min: -2, max: 40 }) }),
      fc.record({ do: fc.constant('delete' as const), key }),
      fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 15 }) }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), fc.array(step, { maxLength: 120 }), (capacity, steps) => {
        const map = new BoundedTtlMap<number>(capacity);
        const model = new Map<string, { value: number; end: number }>();
        let now = 0;
        for (const [value, action] of steps.entries()) {
          if (action.do === 'wait') {
            now += action.ms;
          } else if (action.do === 'delete') {
            const wasLive = model.delete(action.key);
            assert.ok(map.delete(action.key) || !wasLive);
          } else {
            const fits = model.has(action.key) || model.size < capacity;
            const done = map.set(action.key, value, now + action.ttl, now);
            assert.equal(done, fits);
            if (done) model.set(action.key, { value, end: now + action.ttl });
          }
          for (const [k, { end }] of model) {
            if (now >= end) model.delete(k);
          }
          assert.ok(map.size <= capacity);
          for (let k = 0; k < 12; k++) {
            assert.equal(map.get(String(k), now), model.get(String(k))?.value);
            assert.equal(map.expiry(String(k), now), model.get(String(k))?.end);
          }
        }
      }),
      { numRuns: 500 },
    );
  });
});
