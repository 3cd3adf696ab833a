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

/** Calls `visit` for every value in the order of the file, parents before their members. */
export function walk(value: unknown, visit: (path: string, value: unknown) => void, path = ''): void {
  visit(path, value);
  if (Array.isArray(value)) for (const [index, item] of value.entries()) walk(item, visit, childPath(path, index));
  else if (isRecord(value))
    for (const [key, member] of Object.entries(value)) walk(member, visit, childPath(path, key));
}

/** Returns a text with its line breaks and control characters escaped. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, unicodeEscape);
}
