import type { SchemaNode } from './node.ts';

/** The schema keyword of milliseconds that may be written as a text. Numbers below its value cause a warning. */
export const DURATION = 'duration';

/** The pattern of a duration's text. */
export const DURATION_PATTERN = '^\\d{1,15}(ms|s|m|h|d)$';

const WRITTEN = new RegExp(DURATION_PATTERN);

/** The milliseconds of each unit. */
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Returns whether a schema is one of a duration. */
export function isDuration(node: SchemaNode): boolean {
  return node.keyword(DURATION) !== undefined;
}

/** Returns the milliseconds of a text such as `500ms`, `10s`, `2m`, `1h` or `1d`; `undefined` for any other text. */
export function millisecondsOf(text: string): number | undefined {
  const [, unit = ''] = WRITTEN.exec(text) ?? [];
  const milliseconds = UNITS[unit];
  return milliseconds && Number.parseInt(text, 10) * milliseconds;
}
