/** CPU of this build for a request by that of the release, beyond which it is slower. */
const LIMIT = 1.08;
/** Of five rounds four must say that it is slower at all: a few rounds on a busy machine move a median. */
const DISSENT = 0.2;

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

/** Each value by the one of the same round. */
export function ratios(values: readonly number[], by: readonly number[]): number[] {
  return values.map((value, i) => value / (by[i] ?? Number.NaN));
}

/** The median, and where eight of ten values are. */
export function spread(values: readonly number[]): string {
  const [low, middle, high] = [0.1, 0.5, 0.9].map((part) => quantile(values, part).toFixed(2));
  return `${middle} (${low}–${high})`;
}

/** @param ratios of each round: CPU for a request by that of the release in the same round. */
export function isSlower(ratios: readonly number[]): boolean {
  return median(ratios) > LIMIT && quantile(ratios, DISSENT) > 1;
}

/** A table in Markdown. */
export function table(header: readonly string[], rows: ReadonlyArray<readonly string[]>): string {
  const rule = `|${header.map(() => '---|').join('')}`;
  const [head, ...lines] = [header, ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return [head, rule, ...lines].join('\n');
}
