/** Each ABI type takes the JSON values that fit it, and says why it refuses others. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AbiCoder } from 'ethers';
import fc from 'fast-check';
import { type AbiType, type AbiValue, TYPES } from '../../../builtins/encode-abi/abi.ts';
import { coerce, encodeValues, ValueError } from '../../../builtins/encode-abi/values.ts';
import { toHex } from '../../../lib/eth/hex.ts';
import { anyCharacter } from '../../support/any-character.ts';

function typeOf(name: string): AbiType {
  const type = TYPES.get(name);
  assert.ok(type, name);
  return type;
}

function convert(name: string, value: unknown, token?: string): AbiValue {
  return coerce({ type: typeOf(name), value, token });
}

it('a value that does not fit is refused without being shown', () => {
  const told: [name: string, value: unknown, message: string][] = [
    ['int256', 'secret', 'a text of 6 characters is no value for int256'],
    ['int256', '', 'an empty text is no value for int256'],
    ['int256', null, 'null is no value for int256'],
    ['int256', [1], 'an array is no value for int256'],
    ['int256', {}, 'an object is no value for int256'],
    ['int256', true, 'a boolean is no value for int256'],
    ['int8', 128, 'the number is out of the range of int8'],
    ['uint8', -1, 'the number is out of the range of uint8'],
    ['bytes4', '0x1234567890', '5 bytes are too many for bytes4'],
    ['bytes32', 'x'.repeat(33), '33 bytes are too many for bytes32'],
    ['bytes2', '€', '3 bytes are too many for bytes2'],
    ['bytes', '0x1', 'a text that starts with 0x is not a whole number of hex bytes'],
    ['string', 'a\udc00b', 'the text holds a lone surrogate, which UTF-8 cannot carry'],
  ];
  for (const [name, value, message] of told) assert.throws(() => convert(name, value), { name: 'ValueError', message });
});

it('a number is refused where no double or no token of JSON says it', () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, undefined])
    for (const name of ['int256', 'string']) assert.throws(() => convert(name, value), ValueError);
  for (const name of ['int256', 'string']) assert.throws(() => convert(name, 1, '1'.repeat(5000)), ValueError);
});

describe('a list of values', () => {
  it('cannot repeat a long text', () => {
    const item = { type: typeOf('string'), value: 'x'.repeat(600_000) };
    assert.equal(encodeValues([item]).length, 64 + 600_000);
    assert.throws(
      () => encodeValues([item, item]),
      new ValueError('the values are longer than 1048576 characters together'),
    );
  });

  it('comes back from ethers for every JSON value that it takes', () => {
    const names = ['int256', 'uint64', 'bool', 'bytes32', 'address', 'string', 'bytes'];
    const value = fc.oneof(fc.jsonValue(), fc.string({ unit: anyCharacter }), fc.bigInt().map(String));
    fc.assert(
      fc.property(fc.constantFrom(...names), value, (name, json) => {
        const type = typeOf(name);
        let coerced: AbiValue;
        try {
          coerced = coerce({ type, value: json });
        } catch (error) {
          assert.ok(error instanceof ValueError);
          return;
        }
        const [decoded] = AbiCoder.defaultAbiCoder().decode([name], encodeValues([{ type, value: json }]));
        assert.deepEqual(decoded, coerced instanceof Uint8Array ? toHex(coerced) : coerced);
      }),
      { numRuns: 2000 },
    );
  });
});
