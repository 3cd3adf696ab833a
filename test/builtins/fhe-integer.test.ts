/** Only an integer that fits its encrypted type is encrypted. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { integerOf } from '../../builtins/fhe/integer.ts';
import type { Bits } from '../../builtins/fhe/protocol.ts';
import type { Hex } from '../../lib/eth/hex.ts';

const word = (value: bigint): Hex => `0x${BigInt.asUintN(256, value).toString(16).padStart(64, '0')}`;

describe('the integer that is to be encrypted', () => {
  it('is at most the largest of its type', () => {
    for (const bits of [8, 16, 32, 64, 128, 256] satisfies Bits[]) {
      const largest = (1n << BigInt(bits)) - 1n;
      assert.equal(integerOf(word(largest), false, bits), largest);
      assert.equal(integerOf(word(0n), true, bits), 0n);
      if (bits === 256) continue;
      for (const signed of [true, false]) {
        assert.throws(
          () => integerOf(word(largest + 1n), signed, bits),
          new RangeError(`the encoded value does not fit euint${bits}`),
        );
      }
    }
  });

  it('is not negative: an int256 with the highest bit set, which is a large uint256', () => {
    const negative = new RangeError('the encoded value is negative');
    for (const value of [-1n, -(1n << 255n)]) {
      for (const bits of [8, 256] satisfies Bits[]) assert.throws(() => integerOf(word(value), true, bits), negative);
    }
    assert.equal(integerOf(word(-1n), false, 256), 2n ** 256n - 1n);
    assert.equal(integerOf(word((1n << 255n) - 1n), true, 256), (1n << 255n) - 1n);
  });

  it('is one word', () => {
    for (const [data, bytes] of [
      ['0x', 0],
      [`0x${'00'.repeat(31)}`, 31],
      [`0x${'00'.repeat(64)}`, 64],
    ] satisfies [Hex, number][]) {
      assert.throws(
        () => integerOf(data, false, 8),
        new RangeError(`the encoded value is not one integer but ${bytes} bytes`),
      );
    }
  });
});
