/** Values are encoded as ethers encodes them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AbiCoder } from 'ethers';
import fc from 'fast-check';
import { type AbiType, type AbiValue, encodeAbi, parseType, typeNames } from '../../../builtins/encode-abi/abi.ts';
import { toHex } from '../../../lib/eth/hex.ts';

const ethers = AbiCoder.defaultAbiCoder();

function typeOf(name: string): AbiType {
  const type = parseType(name);
  assert.ok(type, name);
  return type;
}

function encode(names: string[], values: AbiValue[]): string {
  return toHex(encodeAbi(names.map(typeOf), values));
}

const word = (digits: string) => digits.padStart(64, '0');

const bytes = (length: { minLength: number; maxLength: number }) => fc.uint8Array(length);

function anyValue(type: AbiType): fc.Arbitrary<AbiValue> {
  switch (type.kind) {
    case 'int':
      return fc.oneof(fc.bigInt({ min: type.min, max: type.max }), fc.constantFrom(type.min, type.max, 0n));
    case 'fixedBytes':
      return bytes({ minLength: type.size, maxLength: type.size });
    case 'bool':
      return fc.boolean();
    case 'address':
      return bytes({ minLength: 20, maxLength: 20 }).map(toHex);
    case 'string':
      return fc.string({ unit: 'grapheme', maxLength: 100 });
    case 'bytes':
      return bytes({ minLength: 0, maxLength: 100 });
  }
}

const anyType = fc.constantFrom(...typeNames()).map(typeOf);
const anyList = fc.array(
  anyType.chain((type) => anyValue(type).map((value) => ({ type, value }))),
  { maxLength: 8 },
);

/** ethers hands back hex for bytes and a checksummed address. */
function comparable(value: unknown): unknown {
  if (value instanceof Uint8Array) return toHex(value);
  return typeof value === 'string' && value.startsWith('0x') ? value.toLowerCase() : value;
}

describe('types', () => {
  it('knows every elementary type and no other', () => {
    const integers = Array.from({ length: 32 }, (_, i) => [`int${8 * (i + 1)}`, `uint${8 * (i + 1)}`]).flat();
    const fixed = Array.from({ length: 32 }, (_, i) => `bytes${i + 1}`);
    assert.deepEqual(typeNames().toSorted(), [...integers, ...fixed, 'bool', 'address', 'string', 'bytes'].toSorted());
  });

  for (const name of [
    ...['int', 'uint', 'byte', 'function', 'fixed', 'int0', 'int7', 'int264', 'uint08', 'bytes0', 'bytes33', 'bytes01'],
    ...['', '*', ' int256', 'Int256', 'int256[]', '(int256)', '__proto__', 'constructor'],
  ]) {
    it(`refuses ${JSON.stringify(name)}`, () => assert.equal(parseType(name), undefined));
  }

  it('knows the bounds of integers', () => {
    assert.deepEqual(parseType('int8'), { kind: 'int', name: 'int8', min: -128n, max: 127n });
    assert.deepEqual(parseType('uint16'), { kind: 'int', name: 'uint16', min: 0n, max: 65535n });
    assert.deepEqual(parseType('uint256'), { kind: 'int', name: 'uint256', min: 0n, max: 2n ** 256n - 1n });
  });
});

describe('abi.encode', () => {
  it('writes integers as one big-endian word', () => {
    assert.equal(encode(['uint8'], [69n]), `0x${word('45')}`);
    assert.equal(encode(['int256'], [-1n]), `0x${'f'.repeat(64)}`);
    assert.equal(encode(['int8'], [-128n]), `0x${'f'.repeat(62)}80`);
    assert.equal(encode(['int256'], [-(2n ** 255n)]), `0x8${'0'.repeat(63)}`);
    assert.equal(encode(['uint256'], [2n ** 64n]), `0x${word('10000000000000000')}`);
    assert.equal(encode(['uint256'], [2n ** 63n]), `0x${word('8000000000000000')}`);
  });

  it('writes a list as heads and tails', () => {
    assert.equal(
      encode(['uint256', 'string', 'bytes3', 'bytes'], [0x123n, 'Hello, world!', Buffer.from('abc'), Buffer.alloc(0)]),
      '0x' +
        word('123') +
        word('80') +
        `616263${'0'.repeat(58)}` +
        word('c0') +
        word('d') +
        `48656c6c6f2c20776f726c6421${'0'.repeat(38)}` +
        word('0'),
    );
  });

  it('is empty for an empty list', () => assert.equal(encode([], []), '0x'));

  it('equals the bytes that ethers writes, and ethers reads the values back', () => {
    fc.assert(
      fc.property(anyList, (list) => {
        const types = list.map(({ type }) => type);
        const names = types.map(({ name }) => name);
        const values = list.map(({ value }) => value);
        const encoded = toHex(encodeAbi(types, values));
        assert.equal(encoded, ethers.encode(names, values));
        assert.deepEqual(ethers.decode(names, encoded).toArray().map(comparable), values.map(comparable));
      }),
      { numRuns: 500 },
    );
  });

  it('holds the bounds of every integer type', () => {
    for (const type of typeNames().map(typeOf)) {
      if (type.kind !== 'int') continue;
      for (const value of [type.min, type.max]) {
        assert.equal(toHex(encodeAbi([type], [value])), ethers.encode([type.name], [value]));
      }
      for (const value of [type.min - 1n, type.max + 1n]) assert.throws(() => encodeAbi([type], [value]), TypeError);
    }
  });

  it('refuses values of another form', () => {
    const wrong: [string, AbiValue][] = [
      ['int256', '1'],
      ['bool', 1n],
      ['string', 1n],
      ['bytes', '0x00'],
      ['bytes4', new Uint8Array(3)],
      ['bytes4', new Uint8Array(5)],
      ['address', '0x00'],
      ['address', '00'.repeat(20)],
      ['address', new Uint8Array(20)],
    ];
    for (const [name, value] of wrong) assert.throws(() => encode([name], [value]), Error, name);
    assert.throws(() => encode(['bool'], []), { name: 'TypeError', message: '1 ABI types but 0 values' });
  });
});
