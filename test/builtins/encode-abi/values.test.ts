/** Each ABI type takes the JSON values that fit it, and says why it refuses others. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AbiCoder } from 'ethers';
import fc from 'fast-check';
import { type AbiType, type AbiValue, parseType } from '../../../builtins/encode-abi/abi.ts';
import { parseTimes } from '../../../builtins/encode-abi/decimal.ts';
import { coerce, encodeValues, ValueError } from '../../../builtins/encode-abi/values.ts';
import { toHex } from '../../../lib/eth/hex.ts';

const MAX = 2n ** 256n - 1n;
const ADDRESS = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';

function typeOf(name: string): AbiType {
  const type = parseType(name);
  assert.ok(type, name);
  return type;
}

function convert(name: string, value: unknown, times?: string, token?: string): AbiValue {
  return coerce({ type: typeOf(name), value, times: times === undefined ? undefined : parseTimes(times), token });
}

/** The value of the JSON text, with its digits. */
function fromJson(name: string, token: string, times?: string): AbiValue {
  return convert(name, JSON.parse(token), times, token);
}

function hex(name: string, value: unknown): string {
  const bytes = convert(name, value);
  assert.ok(bytes instanceof Uint8Array);
  return toHex(bytes);
}

function refuses(name: string, value: unknown, times?: string, token?: string): void {
  assert.throws(() => convert(name, value, times, token), ValueError, `${name} of ${JSON.stringify(value)}`);
}

describe('integers', () => {
  it('takes JSON numbers digit by digit', () => {
    assert.equal(fromJson('uint256', '12345678901234567891'), 12345678901234567891n);
    assert.equal(fromJson('int256', '0.1234567890123456789', '1e19'), 1234567890123456789n);
    assert.equal(fromJson('int256', '1e-7', '1e18'), 100000000000n);
    assert.equal(fromJson('int256', '-0'), 0n);
    assert.equal(fromJson('int256', '0.99999999999999999999'), 0n);
  });

  it('takes numbers without their source text as the double shows itself', () => {
    assert.equal(convert('int256', 1e21), 10n ** 21n);
    assert.equal(convert('int256', 1e-7, '1e18'), 100000000000n);
    assert.equal(convert('int256', 0.1, '10'), 1n);
    assert.equal(convert('int256', -0), 0n);
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) refuses('int256', value);
  });

  it('takes decimal texts', () => {
    assert.equal(convert('int256', '-12.5e1'), -125n);
    assert.equal(convert('int256', '+3.99'), 3n);
    assert.equal(convert('uint256', MAX.toString()), MAX);
    refuses('uint256', (MAX + 1n).toString());
    assert.equal(convert('uint256', `${MAX}0`, '0.1'), MAX);
    assert.equal(convert('int256', (-(2n ** 255n)).toString()), -(2n ** 255n));
    refuses('int256', (-(2n ** 255n) - 1n).toString());
  });

  it('takes hex texts', () => {
    assert.equal(convert('uint256', '0x1F'), 31n);
    assert.equal(convert('uint256', '0xf', '1e18'), 15n * 10n ** 18n);
    assert.equal(convert('uint256', `0x${'f'.repeat(64)}`), MAX);
    refuses('uint256', `0x1${'0'.repeat(64)}`);
    assert.equal(convert('uint256', `0x${'0'.repeat(500)}7`), 7n);
    assert.equal(convert('uint256', '0x0'), 0n);
    assert.equal(convert('uint256', `0x1${'0'.repeat(127)}`, '1e-77'), 16n ** 127n / 10n ** 77n);
    for (const text of ['0x', '0X1f', '-0x1', '0x1g', '0x1.5', `0x${'0'.repeat(4096)}`, `0x${'f'.repeat(129)}`]) {
      refuses('uint256', text, '1e-77');
    }
  });

  it('multiplies before it truncates', () => {
    assert.equal(fromJson('int256', '1.239', '100'), 123n);
    assert.equal(fromJson('int256', '-1.239', '100'), -123n);
    assert.equal(fromJson('int256', '1234567', '1e-6'), 1n);
    assert.equal(fromJson('uint256', '1', '1e77'), 10n ** 77n);
    assert.equal(fromJson('uint256', '-0.5'), 0n);
  });

  it('checks the range of the type', () => {
    assert.equal(convert('int8', 127), 127n);
    assert.equal(convert('uint8', 255.9), 255n);
    assert.throws(() => convert('int8', 128), {
      name: 'ValueError',
      message: 'the number is out of the range of int8',
    });
    assert.throws(() => convert('uint8', -1), {
      name: 'ValueError',
      message: 'the number is out of the range of uint8',
    });
    assert.throws(() => fromJson('int256', '1e1000000000'), {
      name: 'ValueError',
      message: 'the number is out of the range of int256',
    });
  });

  it('refuses everything else', () => {
    for (const value of [true, false, null, undefined, {}, [], [1], '', ' 1', '1 ', 'abc', '1,5', 'NaN']) {
      refuses('int256', value);
      refuses('uint256', value, '1e18');
    }
    refuses('int256', '9'.repeat(5000), '1e-77');
    refuses('int256', 1, undefined, '1'.repeat(5000));
  });

  it('never shows the value', () => {
    assert.throws(() => convert('int256', 'secret'), new ValueError('a text of 6 characters is no value for int256'));
    assert.throws(() => convert('int256', ''), new ValueError('an empty text is no value for int256'));
    assert.throws(() => convert('int256', null), new ValueError('null is no value for int256'));
    assert.throws(() => convert('int256', [1]), new ValueError('an array is no value for int256'));
    assert.throws(() => convert('int256', {}), new ValueError('an object is no value for int256'));
    assert.throws(() => convert('int256', true), new ValueError('a boolean is no value for int256'));
  });
});

describe('bool', () => {
  const rows: [unknown, boolean][] = [
    [true, true],
    [false, false],
    [1, true],
    [0, false],
    [-0, false],
    ['true', true],
    ['false', false],
    ['1', true],
    ['0', false],
  ];
  for (const [value, expected] of rows) {
    it(`takes ${JSON.stringify(value)}`, () => assert.equal(convert('bool', value), expected));
  }

  it('compares numbers exactly', () => {
    assert.equal(fromJson('bool', '1.0'), true);
    assert.equal(fromJson('bool', '10e-1'), true);
    assert.equal(fromJson('bool', '0.0'), false);
    assert.equal(fromJson('bool', '-0'), false);
    refuses('bool', 1, undefined, '1.00000000000000000001');
    refuses('bool', 0, undefined, '1e-400');
  });

  for (const value of [2, -1, 0.5, 'TRUE', 'True', 'yes', '', ' 1', '1.0', '0x1', '00', null, undefined, [], [1], {}]) {
    it(`refuses ${JSON.stringify(value)}`, () => refuses('bool', value));
  }
});

describe('address', () => {
  it('takes a right checksum and single-case digits', () => {
    for (const text of [ADDRESS, ADDRESS.toLowerCase(), `0x${ADDRESS.slice(2).toUpperCase()}`]) {
      assert.equal(convert('address', text), text);
    }
  });

  for (const value of [
    ADDRESS.replace('aA', 'AA'),
    ADDRESS.slice(0, -1),
    `${ADDRESS}0`,
    ADDRESS.slice(2),
    ADDRESS.replace('0x', '0X'),
    `${ADDRESS}\n`,
    '',
    0,
    null,
    [ADDRESS],
  ]) {
    it(`refuses ${JSON.stringify(value)}`, () => refuses('address', value));
  }
});

describe('bytesN and bytes', () => {
  it('pads hex and text on the right', () => {
    assert.equal(hex('bytes4', '0x12'), '0x12000000');
    assert.equal(hex('bytes4', '0x'), '0x00000000');
    assert.equal(hex('bytes4', '0xDEADbeef'), '0xdeadbeef');
    assert.equal(hex('bytes32', 'hello'), `0x68656c6c6f${'0'.repeat(54)}`);
    assert.equal(hex('bytes3', '€'), '0xe282ac');
    assert.equal(hex('bytes32', ''), `0x${'0'.repeat(64)}`);
    assert.equal(hex('bytes32', 'x'.repeat(32)), `0x${'78'.repeat(32)}`);
  });

  it('counts bytes, not characters', () => {
    assert.throws(() => convert('bytes4', '0x1234567890'), new ValueError('5 bytes are too many for bytes4'));
    assert.throws(() => convert('bytes32', 'x'.repeat(33)), new ValueError('33 bytes are too many for bytes32'));
    assert.throws(() => convert('bytes2', '€'), new ValueError('3 bytes are too many for bytes2'));
  });

  it('takes hex or text of any length as bytes', () => {
    assert.equal(hex('bytes', '0x'), '0x');
    assert.equal(hex('bytes', ''), '0x');
    assert.equal(hex('bytes', '0x1234'), '0x1234');
    assert.equal(hex('bytes', '1234'), '0x31323334');
    assert.equal(hex('bytes', '😀'), '0xf09f9880');
  });

  for (const name of ['bytes', 'bytes32']) {
    it(`never signs broken hex as text (${name})`, () => {
      const message = 'a text that starts with 0x is not a whole number of hex bytes';
      for (const text of ['0x1', '0x123g', '0xyz', '0X12', '0x12 ']) {
        assert.throws(() => convert(name, text), new ValueError(message));
      }
    });

    it(`refuses what is no text (${name})`, () => {
      for (const value of [0, 1, 12, true, null, undefined, [], {}, [1, 2]]) refuses(name, value);
    });

    it(`refuses lone surrogates (${name})`, () => {
      for (const text of ['\ud800', 'a\udc00', '\udc00\ud800']) refuses(name, text);
    });
  }
});

describe('string', () => {
  it('takes texts as they are', () => {
    for (const text of ['', ' a ', '0x1', '0xzz', '😀', 'a\u0000b']) assert.equal(convert('string', text), text);
    for (const text of ['\ud800', 'a\udc00b', '\udc00\ud800']) {
      assert.throws(
        () => convert('string', text),
        new ValueError('the text holds a lone surrogate, which UTF-8 cannot carry'),
      );
    }
  });

  const numbers: [string, string][] = [
    ['1', '1'],
    ['1.50', '1.5'],
    ['1e2', '100'],
    ['-0', '0'],
    ['0.1', '0.1'],
    ['1e-7', '1e-7'],
    ['1E21', '1e+21'],
    ['12345678901234567891', '12345678901234567891'],
    ['0.1234567890123456789', '0.1234567890123456789'],
    ['1e400', '1e400'],
    ['1e-400', '1e-400'],
  ];
  for (const [token, text] of numbers) {
    it(`writes the number ${token} as ${text}`, () => assert.equal(fromJson('string', token), text));
  }

  it('writes numbers without source text and booleans', () => {
    assert.equal(convert('string', 1.5), '1.5');
    assert.equal(convert('string', -0), '0');
    assert.equal(convert('string', true), 'true');
    assert.equal(convert('string', false), 'false');
  });

  it('refuses everything else', () => {
    for (const value of [null, undefined, [], {}, Number.NaN, Number.POSITIVE_INFINITY]) refuses('string', value);
    refuses('string', 1, undefined, '1'.repeat(4097));
  });
});

describe('a list of values', () => {
  it('is encoded together', () => {
    const encoded = encodeValues([
      { type: typeOf('int256'), value: 0.1, token: '0.1000000000000000055', times: parseTimes('1e19') },
      { type: typeOf('string'), value: 'hello' },
      { type: typeOf('bool'), value: '1' },
    ]);
    assert.deepEqual(AbiCoder.defaultAbiCoder().decode(['int256', 'string', 'bool'], encoded).toArray(), [
      1000000000000000055n,
      'hello',
      true,
    ]);
  });

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
    const value = fc.oneof(fc.jsonValue(), fc.string({ unit: 'binary' }), fc.bigInt().map(String));
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
