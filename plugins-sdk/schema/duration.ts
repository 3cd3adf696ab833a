import type { SchemaNode } from './node.ts';

/** Marks milliseconds that may be written as a text; smaller numbers than its value are warned of. */
export const DURATION = 'duration';

/** How it is written. */
export const DURATION_PATTERN = '^\\d{1,15}(ms|s|m|h|d)$';

const WRITTEN = new RegExp(DURATION_PATTERN);

const UNITS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

export function isDuration(node: SchemaNode): boolean {
  return node.keyword(DURATION) !== undefined;
}

/** The milliseconds of a text such as `500ms`, `10s`, `2m`, `1h` or `1d`. */
export function millisecondsOf(text: string): number | undefined {
  const unit = WRITTEN.test(text) ? UNITS.get(text.replace(/\d+/, '')) : undefined;
  return unit === undefined ? undefined : Number.parseInt(text, 10) * unit;
}
