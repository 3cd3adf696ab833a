import { type Decimal, decimalOf } from '../shared/decimal.ts';

/** Select the numbers of a sorted list that count. The signed value is their sum, divided by their count. */
const COUNTED = {
  mean: (all: readonly bigint[]) => all,
  median: (all: readonly bigint[]) => all.slice((all.length - 1) >> 1, (all.length >> 1) + 1),
  min: (all: readonly bigint[]) => all.slice(0, 1),
  max: (all: readonly bigint[]) => all.slice(-1),
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
  const integers = decimals.map(({ negative, digits, exponent }) => {
    const magnitude = BigInt(digits) * 10n ** BigInt(exponent - least);
    return negative ? -magnitude : magnitude;
  });
  const counted = COUNTED[combine](integers.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
  const sum = decimalOf(counted.reduce((total, each) => total + each, 0n));
  return { sum: { ...sum, exponent: sum.exponent + least }, count: BigInt(counted.length) };
}
