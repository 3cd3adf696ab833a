import { compareDecimals, type Decimal, decimalOf } from '../shared/decimal.ts';

/** Select the numbers of a sorted list that count. The signed value is their sum, divided by their count. */
const COUNTED = {
  mean: (all: readonly Decimal[]) => all,
  median: (all: readonly Decimal[]) => all.slice((all.length - 1) >> 1, (all.length >> 1) + 1),
  min: (all: readonly Decimal[]) => all.slice(0, 1),
  max: (all: readonly Decimal[]) => all.slice(-1),
};
/** The ways to make one number of several. */
export type Combine = keyof typeof COUNTED;
/** Most decimal places that the numbers may span together, which bounds the cost of their sum. */
const MOST_PLACES = 5000;

/** A sum, and how many numbers were added. */
export interface Quotient {
  readonly sum: Decimal;
  readonly count: bigint;
}

/** Returns the exact sum that is yet to be divided; undefined if the numbers span more than {@link MOST_PLACES}. */
export function combined(decimals: readonly Decimal[], combine: Combine): Quotient | undefined {
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (const { exponent, digits } of decimals) {
    least = Math.min(least, exponent);
    most = Math.max(most, exponent + digits.length);
  }
  if (most - least > MOST_PLACES) return undefined;
  const counted = COUNTED[combine](decimals.toSorted(compareDecimals));
  // Each exponent is expanded once, since an expansion may cost thousands of digits.
  const sums = new Map<number, bigint>();
  for (const { negative, digits, exponent } of counted) {
    const integer = BigInt(negative ? `-${digits}` : digits);
    sums.set(exponent, (sums.get(exponent) ?? 0n) + integer);
  }
  let total = 0n;
  for (const [exponent, sum] of sums) total += sum * 10n ** BigInt(exponent - least);
  const sum = decimalOf(total);
  return { sum: { ...sum, exponent: sum.exponent + least }, count: BigInt(counted.length) };
}
