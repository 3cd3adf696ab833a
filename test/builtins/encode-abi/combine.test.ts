/** What is combined is exact, whatever the numbers. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { TYPES } from '../../../builtins/encode-abi/abi.ts';
import type { Combine } from '../../../builtins/encode-abi/combine.ts';
import { parseTimes } from '../../../builtins/encode-abi/lists.ts';
import { encodeValues, ValueError } from '../../../builtins/encode-abi/values.ts';
import { toHex } from '../../../lib/eth/hex.ts';

const LIFT = 200n;
const UNIT = 10n ** LIFT;
const number = fc
  .tuple(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), fc.integer({ min: -40, max: 20 }))
  .map(([integer, exponent]) => ({
    text: `${integer}e${exponent}`,
    lifted: integer * 10n ** (LIFT + BigInt(exponent)),
  }));
const times = fc.constantFrom('1', '1e18', '-1', '0.003', '7e-5', '0');

function encoded(texts: readonly string[], combine: Combine, factor: string, exact: boolean): bigint {
  const type = TYPES.get('int256');
  assert.ok(type);
  const items = texts.map((value) => ({ type, value, times: parseTimes(factor), exact }));
  return BigInt.asIntN(256, BigInt(toHex(encodeValues(items, combine))));
}

describe('combined numbers', () => {
  for (const combine of ['mean', 'median', 'min', 'max'] as const)
    it(`${combine}: equals the same computation on whole integers`, () => {
      fc.assert(
        fc.property(fc.array(number, { minLength: 1, maxLength: 12 }), times, (numbers, factor) => {
          const sorted = numbers.map(({ lifted }) => lifted).sort((a, b) => Number(a > b) - Number(a < b));
          const { length } = sorted;
          const picked = {
            mean: sorted,
            median: length % 2 === 1 ? [sorted[(length - 1) / 2]] : [sorted[length / 2 - 1], sorted[length / 2]],
            min: [sorted[0]],
            max: [sorted[length - 1]],
          }[combine];
          const { negative, digits, exponent } = parseTimes(factor);
          const by = BigInt(digits) * 10n ** (LIFT + BigInt(exponent)) * (negative ? -1n : 1n);
          const product = picked.reduce<bigint>((sum, each = 0n) => sum + each, 0n) * by;
          const divisor = UNIT * UNIT * BigInt(picked.length);
          const texts = numbers.map(({ text }) => text);
          assert.equal(encoded(texts, combine, factor, false), product / divisor);
          if (product % divisor === 0n) assert.equal(encoded(texts, combine, factor, true), product / divisor);
          else assert.throws(() => encoded(texts, combine, factor, true), ValueError);
        }),
        { numRuns: 500 },
      );
    });
});
