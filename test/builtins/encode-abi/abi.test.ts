/** Values are encoded as ethers encodes them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AbiCoder } from 'ethers';
import fc from 'fast-check';
import { type AbiType, type AbiValue, encodeAbi, TYPES } from '../../../builtins/encode-abi/abi.ts';
import { toHex } from '../../../lib/eth/hex.ts';

const ethers = AbiCoder.defaultAbiCoder();

function typeOf(name: string): AbiType {
  const type = TYPES.get(name);
  assert.ok(type, name);
  return type;
}

function encode(names: string[], values: AbiValue[]): string {
  return toHex(encodeAbi(names.map(typeOf), values));
}

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

const anyType = fc.constantFrom(...[...TYPES.keys()]).map(typeOf);
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
    assert.deepEqual(
      [...TYPES.keys()].toSorted(),
      [...integers, ...fixed, 'bool', 'address', 'string', 'bytes'].toSorted(),
    );
  });

  for (const name of [
    ...['int', 'uint', 'byte', 'function', 'fixed', 'int0', 'int7', 'int264', 'uint08', 'bytes0', 'bytes33', 'bytes01'],
    ...['', '*', ' int256', 'Int256', 'int256[]', '(int256)', '__proto__', 'constructor'],
  ]) {
    it(`refuses ${JSON.stringify(name)}`, () => assert.equal(TYPES.get(name), undefined));
  }

  it('knows the bounds of integers', () => {
    assert.deepEqual(TYPES.get('int8'), { kind: 'int', name: 'int8', min: -128n, max: 127n });
    assert.deepEqual(TYPES.get('uint16'), { kind: 'int', name: 'uint16', min: 0n, max: 65535n });
    assert.deepEqual(TYPES.get('uint256'), { kind: 'int', name: 'uint256', min: 0n, max: 2n ** 256n - 1n });
  });
});

describe('abi.encode', () => {
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
    for (const type of [...TYPES.keys()].map(typeOf)) {
      if (type.kind !== 'int') continue;
      for (const value of [type.min, type.max])
        assert.equal(toHex(encodeAbi([type], [value])), ethers.encode([type.name], [value]));
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
