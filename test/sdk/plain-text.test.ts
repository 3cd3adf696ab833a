/** A value that is too long as JSON is refused, by the character, and before all of it has been read. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { plainText, TooLong } from '../../plugins-sdk/results/plain.ts';

const VALUES = [null, false, 7, -0, '', 'text', [], [1, 1, 1], [[[[1]]]], [[], {}], {}, { '': 0 }, { a: { b: {} } }];

for (const value of VALUES) {
  const text = JSON.stringify(value);
  it(`${text} is just as long as it is`, () => {
    assert.equal(plainText(value, text.length), text);
    assert.throws(() => plainText(value, text.length - 1), TooLong);
  });
}

it('a list of which each item takes a comma is read to the half', () => {
  let read = 0;
  const list = new Proxy(new Array(1000).fill(1), {
    get: (items, key) => {
      if (typeof key === 'string' && /^\d+$/.test(key)) read += 1;
      return Reflect.get(items, key);
    },
  });
  assert.throws(() => plainText(list, 1000), TooLong);
  assert.equal(read, 500);
});
