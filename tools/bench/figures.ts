/** This build is slower if its CPU time for a request is more than this many times the release's. */
const LIMIT = 1.08;
/** The part of rounds that may show no slowdown: a few rounds on a busy machine can move the median. */
const DISSENT = 0.2;

/** Returns a quantile, interpolated linearly between neighbours. @param part from 0 to 1. */
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

/** Returns each value divided by that of the same round. */
export function ratios(values: readonly number[], by: readonly number[]): number[] {
  return values.map((value, i) => value / (by[i] ?? Number.NaN));
}

/** Formats the median, and the range of the middle 80 % of values. */
export function spread(values: readonly number[]): string {
  const [low, middle, high] = [0.1, 0.5, 0.9].map((part) => quantile(values, part).toFixed(2));
  return `${middle} (${low}–${high})`;
}

/** Judges whether this build is slower. @param ratios for each round, the CPU time of a request divided by the release's. */
export function isSlower(ratios: readonly number[]): boolean {
  return median(ratios) > LIMIT && quantile(ratios, DISSENT) > 1;
}

/** Returns a table in Markdown. */
export function table(header: readonly string[], rows: ReadonlyArray<readonly string[]>): string {
  const rule = `|${header.map(() => '---|').join('')}`;
  const [head, ...lines] = [header, ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return [head, rule, ...lines].join('\n');
}
