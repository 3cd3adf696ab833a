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
/** 2^256 has 78 digits. */
const MAX_INTEGER_DIGITS = 78;
const BOUND = 10n ** 78n;
/** Beyond any text's digit count, and small enough that sums of a few of them stay exact in a double. */
const EXPONENT_LIMIT = 1e12;
const DECIMAL = /^([+-]?)(?=\.?\d)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/;
/** The powers of ten up to 10^64. */
const POWERS = Array.from({ length: 65 }, (_, zeros) => 10n ** BigInt(zeros));
const powerOfTen = (zeros: number): bigint => POWERS[zeros] ?? 10n ** BigInt(zeros);

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
  return normalized(integer < 0n, String(integer).replace('-', ''), 0);
}

/** Returns a number below zero if `a` is less than `b`, above zero if it is more, zero if they are equal. */
export function compareDecimals(a: Decimal, b: Decimal): number {
  if (a.negative !== b.negative) return a.negative ? -1 : 1;
  const [x, y] = a.negative ? [b, a] : [a, b];
  if (x.digits === '' || y.digits === '') return x.digits.length - y.digits.length;
  const places = x.digits.length + x.exponent - y.digits.length - y.exponent;
  return places || Number(x.digits > y.digits) - Number(x.digits < y.digits);
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
    exponent >= 0 ? (coefficient * powerOfTen(exponent)) / divisor : coefficient / (powerOfTen(-exponent) * divisor);
  if (magnitude >= BOUND) return undefined;
  return value.negative !== (times?.negative ?? false) ? -magnitude : magnitude;
}

/** Whether {@link scaleToInteger} truncates nothing. @param divisor less than 2^64. */
export function isWhole(value: Decimal, times = decimalOf(1n), divisor = 1n): boolean {
  const digits = String(BigInt(value.digits) * BigInt(times.digits));
  return isMultiple(normalized(false, digits, value.exponent + times.exponent), decimalOf(divisor));
}

/** Whether `value` is a whole multiple of `step`. @param step with digits less than 2^64. */
export function isMultiple(value: Decimal, step: Decimal): boolean {
  const zeros = value.exponent - step.exponent;
  if (value.digits === '' || zeros < 0 || step.digits === '1') return value.digits === '' || zeros >= 0;
  // 64 zeros are enough: a number below 2^64 has fewer than 64 factors of 2 and of 5.
  return (BigInt(value.digits) * (POWERS[Math.min(zeros, 64)] ?? 1n)) % BigInt(step.digits) === 0n;
}

/** Whether a number is 1. */
export function isOne({ negative, digits, exponent }: Decimal): boolean {
  return !negative && digits === '1' && exponent === 0;
}

/** Whether a number lies between -1 and 1 and is not zero: as a multiplier it cuts digits. */
export function isFraction({ digits, exponent }: Decimal): boolean {
  return digits !== '' && digits.length + exponent <= 0;
}

function normalized(negative: boolean, digits: string, exponent: number): Decimal {
  let start = 0;
  let end = digits.length;
  while (digits[start] === '0') start++;
  while (end > start && digits[end - 1] === '0') end--;
  if (start === end) return { negative: false, digits: '', exponent: 0 };
  return { negative, digits: digits.slice(start, end), exponent: exponent + digits.length - end };
}
