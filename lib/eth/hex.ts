import { randomBytes } from 'node:crypto';
import { clipped } from '../text.ts';
import { keccak256 } from './keccak.ts';

export { keccak256 };

/** `0x` and hex digits. The type cannot express that their number is even; {@link isHex} checks it. */
export type Hex = `0x${string}`;

/** 20 bytes of `Hex`. Addresses that this library returns carry the EIP-55 checksum. */
export type Address = Hex;

const HEX = /^0x[0-9a-fA-F]*$/;
const BYTES_32 = /^0x[0-9a-fA-F]{64}$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const SHOWN_CHARACTERS = 80;

/** Checks for `0x` and an even number of hex digits, in either case; there may be none. */
export function isHex(value: unknown): value is Hex {
  return typeof value === 'string' && value.length % 2 === 0 && HEX.test(value);
}

/** Checks for `0x` and 64 hex digits of either case. */
export function isBytes32(value: unknown): value is Hex {
  return typeof value === 'string' && BYTES_32.test(value);
}

/** Checks whether {@link checksumAddress} accepts a value. */
export function isAddress(value: unknown): value is Address {
  if (typeof value !== 'string' || !ADDRESS.test(value)) return false;
  return isSingleCase(value) || value === withChecksum(value);
}

/** Checks whether two hex texts stand for the same bytes. */
export function isSameHex(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

/** Returns bytes as lower-case hex, with `0x`. */
export function toHex(bytes: Uint8Array): Hex {
  if (!(bytes instanceof Uint8Array)) throw new TypeError('expected bytes');
  // The `buffer` of a short array exists only once it is asked for, which takes longer than a copy.
  return `0x${Buffer.from(bytes).toString('hex')}`;
}

/**
 * Returns the bytes of a hex string.
 * @throws Error when {@link isHex} is false. The message never shows the value, which may be a key.
 */
export function toBytes(hex: Hex): Buffer {
  // Buffer.from alone would stop silently at the first character that is no hex digit.
  if (!isHex(hex)) throw new Error('expected 0x and an even number of hex digits');
  return Buffer.from(hex.slice(2), 'hex');
}

/**
 * Returns an address with its checksum (EIP-55). All-lower and all-upper digits carry no checksum and are accepted.
 *
 * @throws Error naming the value when it is no address, or is mixed-case and its checksum is wrong.
 */
export function checksumAddress(value: string): Address {
  if (typeof value !== 'string' || !ADDRESS.test(value))
    throw new Error(`not an address (0x and 40 hex digits): ${shown(value)}`);
  const address = withChecksum(value);
  if (value !== address && !isSingleCase(value)) throw new Error(`wrong address checksum (EIP-55): ${shown(value)}`);
  return address;
}

function isSingleCase(address: string): boolean {
  const digits = address.slice(2);
  return digits === digits.toLowerCase() || digits === digits.toUpperCase();
}

function withChecksum(address: string): Address {
  const digits = address.slice(2).toLowerCase();
  const nibbles = toHex(keccak256(Buffer.from(digits, 'latin1')));
  let result: Address = '0x';
  for (let i = 0; i < digits.length; i++) {
    const digit = digits.charAt(i);
    result = `${result}${nibbles.charAt(i + 2) >= '8' ? digit.toUpperCase() : digit}`;
  }
  return result;
}

function shown(value: unknown): string {
  return clipped(JSON.stringify(String(value)), SHOWN_CHARACTERS);
}

const ID_BYTES = 32;
const ID_LENGTH = 2 + 2 * ID_BYTES;
/** The texts of many ids, drawn at once: a call to the generator costs more than making a hundred ids. */
let pool = Buffer.alloc(0);
let used = 0;

/** Returns 32 random bytes as `0x` hex. */
export function randomId(): Hex {
  if (used === pool.length) {
    const digits = randomBytes(128 * ID_BYTES).toString('hex');
    pool = Buffer.from(digits.replace(/.{64}/g, '0x$&'), 'latin1');
    used = 0;
  }
  used += ID_LENGTH;
  // The pool is a buffer: a slice of a long string would keep the whole string in memory for as long as the id lives.
  return pool.toString('latin1', used - ID_LENGTH, used) as Hex;
}
