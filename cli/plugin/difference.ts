import { clipped } from '../../lib/text/clipped.ts';
import { childPath, isRecord } from '../../plugins-sdk/schema/path.ts';

/** Characters of a value that are shown. */
const LONGEST_VALUE = 72;
/** Differences that are shown. */
const MOST = 5;

/** In what two JSON values differ, in a line: `data.price: 1.234 → 1.23, data.note: removed`; empty when in nothing. */
export function difference(before: unknown, after: unknown): string {
  const found = differences(before, after, '');
  const surplus = found.length - MOST;
  return [...found.slice(0, MOST), ...(surplus > 0 ? [`and ${surplus} more`] : [])].join(', ');
}

function differences(before: unknown, after: unknown, path: string): string[] {
  if (isRecord(before) && isRecord(after)) return ofMembers(before, after, Object.keys, path);
  if (Array.isArray(before) && Array.isArray(after)) return ofMembers(before, after, indexes, path);
  if (before === after) return [];
  if (before === undefined) return [`${path}: added ${shown(after)}`];
  if (after === undefined) return [`${path}: removed`];
  return [`${path}: ${shown(before)} → ${shown(after)}`];
}

function ofMembers<T extends object>(
  before: T,
  after: T,
  keysOf: (value: T) => readonly (string | number)[],
  path: string,
): string[] {
  const keys = new Set([...keysOf(before), ...keysOf(after)]);
  return [...keys].flatMap((key) => differences(own(before, key), own(after, key), childPath(path, key)));
}

function indexes(list: readonly unknown[]): number[] {
  return [...list.keys()];
}

function own(value: object, key: string | number): unknown {
  return Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
}

function shown(value: unknown): string {
  return clipped(JSON.stringify(value), LONGEST_VALUE);
}
