/** The value below which a part of all values is, between neighbours in proportion. @param part from 0 to 1. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const place = part * (sorted.length - 1);
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place % 1);
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** A median, and where eight of ten values are. */
export interface Spread {
  readonly low: number;
  readonly middle: number;
  readonly high: number;
}

export function spreadOf(values: readonly number[]): Spread {
  return { low: quantile(values, 0.1), middle: median(values), high: quantile(values, 0.9) };
}

/** Each value by the one of the same round. */
export function ratios(values: readonly number[], by: readonly number[]): number[] {
  return values.map((value, i) => value / (by[i] ?? Number.NaN));
}

export function textOfSpread({ low, middle, high }: Spread): string {
  return `${middle.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`;
}
