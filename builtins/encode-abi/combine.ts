import { type Decimal, decimalOf } from './decimal.ts';

/** The numbers of a sorted list that count: what is signed is their sum, divided by how many they are. */
const COUNTED = {
  mean: (all: readonly bigint[]) => all,
  median: (all: readonly bigint[]) => all.slice((all.length - 1) >> 1, (all.length >> 1) + 1),
  min: (all: readonly bigint[]) => all.slice(0, 1),
  max: (all: readonly bigint[]) => all.slice(-1),
};
/** How an operator makes one number of several. */
export type Combine = keyof typeof COUNTED;
/** Decimal places that the numbers may span together. */
const MOST_PLACES = 5000;

/** A sum, and how many numbers were added. */
export interface Quotient {
  readonly sum: Decimal;
  readonly count: bigint;
}

/** What is left to divide, without a lost digit; undefined where the numbers are too far apart to be added. */
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
