import { toUSVString } from 'node:util';
import { isAddress, isHex, toBytes } from '../../lib/eth/hex.ts';
import { keepsDigits, MAY_BE_INEXACT, withoutRoundedNumbers } from '../../lib/json/numbers.ts';
import { type Decimal, decimalOf, isOne, isWhole, parseDecimal, scaleToInteger } from '../shared/decimal.ts';
import { follow, type Match } from '../shared/json-path/index.ts';
import { type AbiType, type AbiValue, encodeAbi } from './abi.ts';
import { type Combine, combined, type Quotient } from './combine.ts';

/** An upstream value that does not fit its ABI type. The message describes the value without showing it. */
export class ValueError extends Error {
  override readonly name = 'ValueError';
  /** Whether the value is a number that would fit with another multiplier. */
  readonly isOfFactor: boolean;

  constructor(message: string, isOfFactor = false) {
    super(message);
    this.isOfFactor = isOfFactor;
  }
}

/** One value on its way into the encoding; see {@link coerce}. */
export interface Item {
  readonly type: AbiType;
  readonly value: unknown;
  readonly times?: Decimal | undefined;
  readonly token?: string | undefined;
  readonly exact?: boolean | undefined;
  /** Called when a number other than zero is cut to 0. */
  readonly onCutToZero?: (() => void) | undefined;
}

type TypeOf<K extends AbiType['kind']> = Extract<AbiType, { kind: K }>;

/**
 * 16^128 times the smallest multiplier (1e-77) is more than 2^256: longer hex fits no integer, whatever it is multiplied by.
 */
const HEX_INTEGER = /^0x0*([0-9a-fA-F]{1,128})$/;
const MAX_INTEGER_TEXT = 4096;
/** Most characters of all texts together. Only a list that selects a long text of the response repeatedly exceeds it. */
const MAX_TEXTS = 1_048_576;
const BOOLEAN_TEXTS: ReadonlyMap<unknown, boolean> = new Map([
  ['true', true],
  ['false', false],
  ['1', true],
  ['0', false],
]);

/**
 * Encodes a list of values, each {@link coerce | coerced} to its type.
 *
 * @param combine how all of them become one integer.
 * @throws ValueError if a value does not fit its type, or all texts together exceed 1 MiB.
 */
export function encodeValues(items: readonly Item[], combine?: Combine): Uint8Array {
  let length = 0;
  for (const { value } of items) if (typeof value === 'string') length += value.length;
  if (length > MAX_TEXTS) throw new ValueError(`the values are longer than ${MAX_TEXTS} characters together`);
  const values = combine === undefined ? items.map(coerce) : [combineItems(items, combine)];
  const types = items.slice(0, values.length).map(({ type }) => type);
  return encodeAbi(types, values);
}

function combineItems(items: readonly Item[], combine: Combine): bigint {
  const quotient = combined(items.map(toDecimal), combine);
  const [first] = items;
  if (quotient === undefined || first?.type.kind !== 'int')
    throw new ValueError('the numbers are too far apart to be combined');
  return scaled(first.type, quotient, first);
}

/**
 * Converts a JSON value to the form that `encodeAbi` takes for its type.
 *
 * - integers: JSON numbers, decimal texts and `0x` hex texts, multiplied by `times`, then truncated toward zero; the result
 *   must be in the type's range.
 * - `bool`: `true`, `false`, the numbers 0 and 1, the texts `true`, `false`, `0`, `1`.
 * - `address`: `0x` and 40 hex digits; mixed case must carry the right checksum (EIP-55).
 * - `bytesN`: `0x` hex or UTF-8 text of at most N bytes, padded with zeros on the right; `bytes`: `0x` hex or UTF-8 text.
 *   A text that starts with `0x` and is no whole number of hex bytes is refused, so that no typing error is signed as text.
 * - `string`: texts as they are, numbers as decimal text, booleans as `true` or `false`.
 *
 * @param times for integer types only; ignored by the others, which configuration and requests must not combine with it.
 * @param token when `value` is a number that comes from a JSON text: its source text, whose digits count instead of the
 * double's.
 * @param exact whether an integer that would be truncated is refused.
 * @param onCutToZero called when a number other than zero becomes 0, unless it is multiplied by 0.
 * @throws ValueError for any other value.
 */
export function coerce(item: Item): AbiValue {
  const { type, value, token } = item;
  switch (type.kind) {
    case 'int':
      return scaled(type, { sum: toDecimal(item), count: 1n }, item);
    case 'bool':
      return toBoolean(type, value, token);
    case 'address':
      if (!isAddress(value)) throw refused(type, value);
      return value;
    case 'fixedBytes':
      return toFixedBytes(type, value);
    case 'bytes':
      return toContent(type, value);
    case 'string':
      return toText(type, value, token);
  }
}

function toDecimal({ type, value, token }: Item): Decimal {
  const decimal = typeof value === 'string' ? decimalOfText(value) : decimalOfNumber(value, token);
  if (decimal === undefined) throw refused(type, value);
  return decimal;
}

function scaled(
  type: TypeOf<'int'>,
  { sum, count }: Quotient,
  { times, exact, onCutToZero }: Pick<Item, 'times' | 'exact' | 'onCutToZero'>,
): bigint {
  if (exact === true && !isWhole(sum, times, count))
    throw new ValueError(`the number has a fraction, which ${type.name} cuts`, true);
  const integer = scaleToInteger(sum, times, count);
  if (integer === undefined || integer < type.min || integer > type.max)
    throw new ValueError(`the number is out of the range of ${type.name}`, true);
  if (integer === 0n && sum.digits !== '' && times?.digits !== '') onCutToZero?.();
  return integer;
}

function toBoolean(type: AbiType, value: unknown, token: string | undefined): boolean {
  if (typeof value === 'boolean') return value;
  const exact = decimalOfNumber(value, token);
  if (exact?.digits === '') return false;
  if (exact !== undefined && isOne(exact)) return true;
  const boolean = BOOLEAN_TEXTS.get(value);
  if (boolean === undefined) throw refused(type, value);
  return boolean;
}

function toFixedBytes(type: TypeOf<'fixedBytes'>, value: unknown): Uint8Array {
  const content = toContent(type, value);
  if (content.length > type.size) throw new ValueError(`${content.length} bytes are too many for ${type.name}`);
  const bytes = new Uint8Array(type.size);
  bytes.set(content);
  return bytes;
}

function toContent(type: AbiType, value: unknown): Uint8Array {
  if (typeof value !== 'string') throw refused(type, value);
  if (isHex(value)) return toBytes(value);
  if (/^0x/i.test(value)) throw new ValueError('a text that starts with 0x is not a whole number of hex bytes');
  return Buffer.from(wellFormed(value), 'utf8');
}

function toText(type: AbiType, value: unknown, token: string | undefined): string {
  if (typeof value === 'string') return wellFormed(value);
  if (typeof value === 'boolean') return String(value);
  const exact = decimalOfNumber(value, token);
  if (exact === undefined) throw refused(type, value);
  // The double's own text is what clients see of the number elsewhere, so it is used wherever it loses nothing.
  return token === undefined || keepsDigits(token, Number(value)) ? JSON.stringify(value) : token;
}

function decimalOfNumber(value: unknown, token: string | undefined): Decimal | undefined {
  // `Infinity`, from a number without its source text, is no decimal.
  return typeof value === 'number' ? parseDecimal(token ?? String(value)) : undefined;
}

function decimalOfText(value: string): Decimal | undefined {
  if (value.length > MAX_INTEGER_TEXT) return undefined;
  const hex = HEX_INTEGER.exec(value);
  return hex === null ? parseDecimal(value) : decimalOf(BigInt(`0x${hex[1]}`));
}

/** UTF-8 has no bytes for a lone surrogate; an encoder would silently put U+FFFD in its place. */
function wellFormed(value: string): string {
  if (toUSVString(value) !== value) throw new ValueError('the text holds a lone surrogate, which UTF-8 cannot carry');
  return value;
}

function refused(type: AbiType, value: unknown): ValueError {
  return new ValueError(`${described(value)} is no value for ${type.name}`);
}

function described(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (value === '') return 'an empty text';
  if (typeof value === 'string') return `a text of ${value.length} characters`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/**
 * Returns the source text of each matched number that `JSON.parse` rounds to a double; undefined for any other match.
 *
 * @param json the text that the matches were found in
 */
export function exactDigits(matches: readonly Match[], json: string): readonly (string | undefined)[] {
  if (!matches.some(({ value }) => typeof value === 'number') || !MAY_BE_INEXACT.test(json)) return [];
  // Read once for all paths: a client may choose hundreds of them.
  const quoted: unknown = JSON.parse(withoutRoundedNumbers(json, JSON.stringify));
  return matches.map(({ value, location }) => {
    const found = typeof value === 'number' ? follow(quoted, location)?.value : undefined;
    return typeof found === 'string' ? found : undefined;
  });
}
