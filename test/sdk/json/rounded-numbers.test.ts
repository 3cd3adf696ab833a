/** Numbers that a double rounds are found. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withoutRoundedNumbers } from '../../../plugins-sdk/index.ts';

const LONG = '12345678901234567890';

describe('numbers that a double rounds', () => {
  it('are found wherever JSON has numbers, and nowhere else', () => {
    for (const [text, expected] of [
      [`[${LONG},-${LONG},1.0,-5e-3,1e400]`, '[1e999,1e999,1.0,-5e-3,1e999]'],
      [
        `{"${LONG}":"${LONG}","a\\"${LONG}":"${LONG}\\\\","b":${LONG}}`,
        `{"${LONG}":"${LONG}","a\\"${LONG}":"${LONG}\\\\","b":1e999}`,
      ],
    ] as const)
      assert.equal(withoutRoundedNumbers(text), expected);
  });

  it('are not looked for behind a string without an end: each of its quotes would be looked at anew', () => {
    for (const text of [`"\\"${LONG}`, `"\\\n${LONG}`, `["a",${LONG} "${LONG}\\`])
      assert.equal(withoutRoundedNumbers(text), text.replace(`,${LONG}`, ',1e999'));
    const long = '"\\'.repeat(1 << 20);
    assert.equal(withoutRoundedNumbers(long), long);
  });
});
