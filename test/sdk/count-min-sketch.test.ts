/** The sketch never counts too little, and seldom too much. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { CountMinSketch } from '../../plugins-sdk/lib/bounded/count-min-sketch.ts';

describe('CountMinSketch', () => {
  it('never says less than the greatest number that a key was raised to', () => {
    const step = fc.record({ key: fc.string({ maxLength: 3 }), value: fc.integer({ min: 0, max: 1e15 }) });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.array(step, { maxLength: 100 }), (width, steps) => {
        const sketch = new CountMinSketch(width);
        const greatest = new Map<string, number>();
        for (const { key, value } of steps) {
          sketch.raise(key, value);
          greatest.set(key, Math.max(greatest.get(key) ?? 0, value));
          for (const [known, least] of greatest) assert.ok(sketch.bound(known) >= least);
        }
      }),
    );
  });

  it('says just that where there is room, and 0 of a key that it has not seen', () => {
    const sketch = new CountMinSketch(10_000);
    for (let i = 0; i < 100; i++) sketch.raise(`key ${i}`, 1000 + i);
    // Four collisions of 100 keys in 10,000 cells: one key in 100 million.
    for (let i = 0; i < 100; i++)
      assert.deepEqual([sketch.bound(`key ${i}`), sketch.bound(`other ${i}`)], [1000 + i, 0]);
  });

  it('is too high as often as four independent rows say, and no more', () => {
    const width = 2000;
    const keys = 2000;
    const sketch = new CountMinSketch(width);
    for (let i = 0; i < keys; i++) sketch.raise(`key ${i}`, 1);
    const strangers = Array.from({ length: 20_000 }, (_, i) => sketch.bound(`stranger ${i}`));
    const share = strangers.filter((bound) => bound > 0).length / strangers.length;
    const expected = (1 - Math.exp(-keys / width)) ** 4;
    // Twelve standard deviations, of the sample and of the cells that are taken.
    assert.ok(Math.abs(share - expected) < 0.06, `${share} of ${expected}`);
  });

  it('has the same keys collide in some sketches and not in others: nobody can look for keys that do', () => {
    const collide = () => {
      const sketch = new CountMinSketch(4);
      sketch.raise('a', 7);
      return sketch.bound('b') > 0;
    };
    // One of 256.
    const share = Array.from({ length: 20_000 }, collide).filter(Boolean).length / 20_000;
    assert.ok(share > 0.001 && share < 0.01, `${share}`);
  });
});
