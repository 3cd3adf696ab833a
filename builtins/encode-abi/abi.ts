import { isHex, toBytes } from '../../lib/eth/hex.ts';

/**
 * An elementary ABI type. `name` is its canonical name; `min` and `max` are the inclusive bounds of an integer, `size` is
 * the N of `bytesN`.
 */
export type AbiType =
  | { readonly kind: 'int'; readonly name: string; readonly min: bigint; readonly max: bigint }
  | { readonly kind: 'fixedBytes'; readonly name: string; readonly size: number }
  | { readonly kind: 'bool' | 'address' | 'string' | 'bytes'; readonly name: string };

/**
 * A value for {@link encodeAbi}: a bigint for an integer, a boolean for `bool`, text for `string`, bytes for `bytes`, exactly N
 * bytes for `bytesN`, and 20 bytes of `0x` hex for `address`.
 */
export type AbiValue = bigint | boolean | string | Uint8Array;

const WORD = 32;
/** Characters of an address in hex. */
const ADDRESS_LENGTH = 42;
const UTF8 = new TextEncoder();

/**
 * Every elementary type by its canonical name, such as `int256`, `bytes32` or `string`. The aliases `int`, `uint` and `byte` are
 * absent, and `function`, which is no value.
 */
export const TYPES: ReadonlyMap<string, AbiType> = new Map(elementaryTypes().map((type) => [type.name, type]));

/**
 * Encodes values like Solidity's `abi.encode(v1, v2, …)`: one 32-byte head per value, then the tails of the dynamic ones
 * (Solidity ABI specification, "Formal Specification of the Encoding").
 *
 * @throws TypeError if a value does not have its type's {@link AbiValue} form, an integer is out of range, or the lists differ
 * in length.
 */
export function encodeAbi(types: readonly AbiType[], values: readonly AbiValue[]): Buffer {
  if (types.length !== values.length) throw new TypeError(`${types.length} ABI types but ${values.length} values`);
  const tails = types.map((type, i) => tailOf(type, values[i]));
  const headSize = types.length * WORD;
  const tailSize = tails.reduce((sum, tail) => sum + (tail === undefined ? 0 : WORD + padded(tail.length)), 0);

  const bytes = Buffer.alloc(headSize + tailSize);
  let end = headSize;
  for (const [i, type] of types.entries()) {
    const head = i * WORD;
    const tail = tails[i];
    if (tail === undefined) {
      writeStatic(bytes, head, type, values[i]);
      continue;
    }
    writeCount(bytes, head, end);
    writeCount(bytes, end, tail.length);
    bytes.set(tail, end + WORD);
    end += WORD + padded(tail.length);
  }
  return bytes;
}

function elementaryTypes(): AbiType[] {
  const types: AbiType[] = [
    { kind: 'bool', name: 'bool' },
    { kind: 'address', name: 'address' },
    { kind: 'string', name: 'string' },
    { kind: 'bytes', name: 'bytes' },
  ];
  for (let bits = 8n; bits <= 256n; bits += 8n) {
    const half = 1n << (bits - 1n);
    types.push({ kind: 'int', name: `int${bits}`, min: -half, max: half - 1n });
    types.push({ kind: 'int', name: `uint${bits}`, min: 0n, max: 2n * half - 1n });
  }
  for (let size = 1; size <= WORD; size++) types.push({ kind: 'fixedBytes', name: `bytes${size}`, size });
  return types;
}

/** Returns the content of a dynamic value; undefined for a static type, whose value is in the head. */
function tailOf(type: AbiType, value: AbiValue | undefined): Uint8Array | undefined {
  if (type.kind === 'string') {
    if (typeof value !== 'string') throw wrongForm(type);
    return UTF8.encode(value);
  }
  if (type.kind === 'bytes') {
    if (!(value instanceof Uint8Array)) throw wrongForm(type);
    return value;
  }
  return undefined;
}

function writeStatic(bytes: Buffer, at: number, type: AbiType, value: AbiValue | undefined): void {
  if (type.kind === 'int' && typeof value === 'bigint' && value >= type.min && value <= type.max) {
    writeInteger(bytes, at, value);
  } else if (type.kind === 'bool' && typeof value === 'boolean') {
    bytes[at + WORD - 1] = value ? 1 : 0;
  } else if (type.kind === 'fixedBytes' && value instanceof Uint8Array && value.length === type.size) {
    bytes.set(value, at);
  } else if (type.kind === 'address' && isHex(value) && value.length === ADDRESS_LENGTH) {
    bytes.set(toBytes(value), at + WORD - 20);
  } else {
    throw wrongForm(type);
  }
}

/** Writes two's complement, big-endian. Most values fit 64 bits, and shifts of a bigint are slow. */
function writeInteger(bytes: Buffer, at: number, value: bigint): void {
  const low = BigInt.asIntN(64, value);
  bytes.writeBigInt64BE(low, at + 24);
  if (low === value) {
    if (value < 0n) for (let i = 0; i < 24; i += 8) bytes.writeBigInt64BE(-1n, at + i);
    return;
  }
  bytes.writeBigInt64BE(BigInt.asIntN(64, value >> 64n), at + 16);
  bytes.writeBigInt64BE(BigInt.asIntN(64, value >> 128n), at + 8);
  bytes.writeBigInt64BE(BigInt.asIntN(64, value >> 192n), at);
}

/** Writes an offset or a length. Both are far below 2^32, since no value is longer than the response it came from. */
function writeCount(bytes: Buffer, at: number, count: number): void {
  bytes.writeUInt32BE(count, at + WORD - 4);
}

function padded(length: number): number {
  return Math.ceil(length / WORD) * WORD;
}

function wrongForm(type: AbiType): TypeError {
  return new TypeError(`not a value of the ABI type ${type.name}`);
}
