import { PlanError } from './fault.ts';

/**
 * An exact decimal number: `(negative ? -1 : 1) * digits * 10^exponent`.
 *
 * `digits` has neither leading nor trailing zeros, so that equal numbers have equal fields. It is empty for zero (whose
 * exponent is 0 and which is never negative).
 */
export interface Decimal {
  readonly negative: boolean;
  readonly digits: string;
  readonly exponent: number;
}

const MAX_TEXT = 4096;
const MAX_TIMES_TEXT = 100;
const MAX_TIMES_EXPONENT = 77;
/** 2^256 has 78 digits. */
const MAX_INTEGER_DIGITS = 78;
const BOUND = 10n ** 78n;
/** Beyond any text's digit count, and small enough that sums of a few of them stay exact in a double. */
const EXPONENT_LIMIT = 1e12;
const DECIMAL = /^([+-]?)(?=\.?\d)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/;
const DIGIT_ZERO = 0x30;
const ZERO: Decimal = { negative: false, digits: '', exponent: 0 };

/**
 * Reads a decimal number: a JSON number token, or the same with a `+`, leading zeros, or no digit on one side of the
 * point. Costs time in proportion to the text, never to the exponent.
 *
 * @returns undefined for any other text, and for one longer than 4,096 characters.
 */
export function parseDecimal(text: string): Decimal | undefined {
  if (text.length > MAX_TEXT) return undefined;
  const match = DECIMAL.exec(text);
  if (match === null) return undefined;
  const [, sign, whole = '', fraction = '', power = '0'] = match;
  const exponent = Math.max(-EXPONENT_LIMIT, Math.min(EXPONENT_LIMIT, Number(power)));
  return normalized(sign === '-', whole + fraction, exponent - fraction.length);
}

/** Returns the decimal of an integer. */
export function decimalOf(integer: bigint): Decimal {
  const negative = integer < 0n;
  return normalized(negative, (negative ? -integer : integer).toString(), 0);
}

/** Whether two decimals are the same number. */
export function equalDecimals(a: Decimal, b: Decimal): boolean {
  return a.negative === b.negative && a.exponent === b.exponent && a.digits === b.digits;
}

/**
 * Returns the exact product of `value` and `times` (1 when absent), divided by `divisor` and truncated toward zero.
 *
 * Whether it is zero or too large is decided from the digit counts, so that no huge power is ever computed.
 *
 * @returns undefined when the magnitude is 10^78 or more, which no ABI integer holds. Smaller results may still be out of
 * the range of a given type.
 */
export function scaleToInteger(value: Decimal, times?: Decimal, divisor = 1n): bigint | undefined {
  if (value.digits === '' || times?.digits === '') return 0n;
  const exponent = value.exponent + (times?.exponent ?? 0);
  // A product of m and n digits has m + n - 1 or m + n digits.
  const most = value.digits.length + (times?.digits.length ?? 0);
  const least = times === undefined ? most : most - 1;
  if (most + exponent <= 0) return 0n;
  if (least + exponent > MAX_INTEGER_DIGITS + divisor.toString().length) return undefined;

  const coefficient = BigInt(value.digits) * (times === undefined ? 1n : BigInt(times.digits));
  const magnitude =
    exponent >= 0
      ? (coefficient * 10n ** BigInt(exponent)) / divisor
      : coefficient / (10n ** BigInt(-exponent) * divisor);
  if (magnitude >= BOUND) return undefined;
  return value.negative !== (times?.negative ?? false) ? -magnitude : magnitude;
}

/** Whether {@link scaleToInteger} truncates nothing. @param divisor less than 2^64. */
export function isWhole(value: Decimal, times?: Decimal, divisor = 1n): boolean {
  const exponent = value.exponent + (times?.exponent ?? 0);
  if (value.digits === '' || times?.digits === '') return true;
  // The number lies between -1 and 1, and is not zero.
  if (value.digits.length + (times?.digits.length ?? 0) + exponent <= 0) return false;
  // 64 zeros are enough: a divisor below 2^64 has fewer than 64 factors of 2 and of 5.
  const zeros = 10n ** BigInt(Math.max(0, Math.min(exponent, 64)));
  const coefficient = BigInt(value.digits) * BigInt(times?.digits ?? 1) * zeros;
  return coefficient % (10n ** BigInt(Math.max(0, -exponent)) * divisor) === 0n;
}

/** Whether a number lies between -1 and 1 and is not zero: as a multiplier it cuts digits. */
export function isFraction({ digits, exponent }: Decimal): boolean {
  return digits !== '' && digits.length + exponent <= 0;
}

/**
 * Reads a multiplier such as `1e18`, `100`, `-0.5` or `1e-6`.
 *
 * @throws PlanError when the text is no decimal number, is longer than 100 characters, exceeds 10^77 in magnitude, or has
 * a last digit below 10^-77.
 */
export function parseTimes(text: string): Decimal {
  const fault = (message: string) => new PlanError('times', message);
  if (text.length > MAX_TIMES_TEXT) throw fault(`times is longer than ${MAX_TIMES_TEXT} characters`);
  const times = parseDecimal(text);
  if (times === undefined) throw fault('times is not a decimal number such as 100, 0.5 or 1e18');
  const magnitude = times.digits.length + times.exponent - 1;
  const isTooLarge = magnitude > MAX_TIMES_EXPONENT || (magnitude === MAX_TIMES_EXPONENT && times.digits !== '1');
  if (isTooLarge) throw fault(`times is larger than 1e${MAX_TIMES_EXPONENT}`);
  if (times.exponent < -MAX_TIMES_EXPONENT) throw fault(`times is finer than 1e-${MAX_TIMES_EXPONENT}`);
  return times;
}

function normalized(negative: boolean, digits: string, exponent: number): Decimal {
  let start = 0;
  while (digits.charCodeAt(start) === DIGIT_ZERO) start++;
  if (start === digits.length) return ZERO;
  let end = digits.length;
  while (digits.charCodeAt(end - 1) === DIGIT_ZERO) end--;
  return { negative, digits: digits.slice(start, end), exponent: exponent + (digits.length - end) };
}
