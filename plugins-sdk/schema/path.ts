import { isRecord } from '../../lib/json/value.ts';
import { unicodeEscape } from '../../lib/text.ts';

export { isRecord };

const PLAIN_KEY = /^[A-Za-z0-9_-]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: what a terminal would interpret or break a line at
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;

/** Returns the config path of a member: `apis[0]`, `apis[0].url`, `apis[0].headers["a.b"]`. The root is `''`. */
export function childPath(parent: string, key: string | number): string {
  if (typeof key === 'number') return `${parent}[${key}]`;
  if (!PLAIN_KEY.test(key)) return `${parent}[${printable(JSON.stringify(key))}]`;
  return parent === '' ? key : `${parent}.${key}`;
}

/** Returns whether `path` is `ancestor` or a path below it. */
export function isWithin(path: string, ancestor: string): boolean {
  if (!path.startsWith(ancestor)) return false;
  const next = path.charAt(ancestor.length);
  return ancestor === '' || next === '' || next === '.' || next === '[';
}

/** Generates a path and its ancestors, nearest first, without the root. */
export function* lineage(path: string): Generator<string> {
  yield path;
  for (let end = path.length - 1; end > 0; end--) {
    const character = path.charAt(end);
    if (character === '.' || character === '[') yield path.slice(0, end);
  }
}

/** Returns the items of a list by index, or the members of a mapping by key; nothing of any other value. */
export function membersIn(value: unknown): readonly (readonly [key: string | number, member: unknown])[] {
  if (Array.isArray(value)) return [...value.entries()];
  return isRecord(value) ? Object.entries(value) : [];
}

/**
 * Returns a copy of a list or mapping with each member replaced, and left out of a mapping if it becomes `undefined`. Any other
 * value is returned itself.
 */
export function mapMembers(value: unknown, change: (member: unknown, key: string | number) => unknown): unknown {
  if (Array.isArray(value)) return value.map(change);
  if (!isRecord(value)) return value;
  const changed = Object.entries(value).map(([key, member]) => [key, change(member, key)]);
  return Object.fromEntries(changed.filter(([, member]) => member !== undefined));
}

/** Calls `visit` for every value in the order of the file, parents before their members. */
export function walk(value: unknown, visit: (path: string, value: unknown) => void, path = ''): void {
  visit(path, value);
  for (const [key, member] of membersIn(value)) walk(member, visit, childPath(path, key));
}

/** Returns a text with its line breaks and control characters escaped. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, unicodeEscape);
}
