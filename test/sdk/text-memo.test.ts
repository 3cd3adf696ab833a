/** What texts come to is computed once, and kept within bounds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TextMemo } from '../../lib/bounded/text-memo.ts';

/** Results of short texts are worked out once, and never remembered without bound. */

function counted() {
  const memo = new TextMemo<{ readonly text: string }>();
  const worked: string[] = [];
  const of = (text: string) =>
    memo.of(text, () => {
      worked.push(text);
      return { text };
    });
  return { of, worked };
}

describe('what texts come to', () => {
  it('is worked out once for each', () => {
    const { of, worked } = counted();
    assert.equal(of('a'), of('a'));
    assert.deepEqual([of('b'), of('')], [{ text: 'b' }, { text: '' }]);
    assert.deepEqual(worked, ['a', 'b', '']);
  });

  it('is worked out again for what is longer than 512 characters', () => {
    const { of, worked } = counted();
    for (const length of [512, 512, 513, 513]) of('x'.repeat(length));
    const lengths = worked.map(({ length }) => length);
    assert.deepEqual(lengths, [512, 513, 513]);
  });

  it('makes room after 1000 others', () => {
    const { of, worked } = counted();
    for (let i = 0; i < 1000; i++) of(`${i}`);
    of('0');
    assert.equal(worked.length, 1000);
    of('one more');
    of('0');
    assert.deepEqual(worked.slice(1000), ['one more', '0']);
  });

  it('does not hold what was thrown', () => {
    const memo = new TextMemo<string>();
    const fail = () => {
      throw new Error('no');
    };
    assert.throws(() => memo.of('a', fail), { message: 'no' });
    assert.equal(
      memo.of('a', () => 'yes'),
      'yes',
    );
  });
});
