import { isPlain } from '../../../lib/json/value.ts';
import { MAX_MEMO, type Memo } from '../../../plugins-sdk/hooks/memo.ts';
import { MAX_PARAMETERS } from '../../../plugins-sdk/hooks/results.ts';
import { WrongShape } from '../../../plugins-sdk/kernel.ts';
import { plainText, SentJson } from '../../../plugins-sdk/results/plain.ts';
import { isRecord } from '../../../plugins-sdk/schema/path.ts';

/**
 * Values that JSON would change or drop on the way, such as `NaN`, functions and instances of classes. They arrive as
 * values of the same kind. So a result is read, and refused, as it is where plugin and service share a process.
 */

/** Levels and values after which something counts as a cycle. */
const DEEPEST = 300;
const MOST = 10_000;
/** Members of a result, and characters of JSON of what is no text: all are read in one turn of the event loop. */
const MOST_MEMBERS = 256;
const LONGEST_BY_KEY: Readonly<Record<string, number>> = { data: 64 * 1024, parameters: MAX_PARAMETERS };
/** Of other members only names, texts, numbers and booleans count. */
const LONGEST_OTHER = 64;

type Packed = readonly [kind: string, value?: unknown];

/** Members of results that count also where they are inherited. */
const KNOWN = ['reject', 'status', 'message', 'parameters', 'data'];

/** @returns the members of a report that carry the value: its own members, each as JSON text, or what JSON cannot carry. */
export function packResult(value: unknown): { readonly r?: unknown; readonly odd?: unknown } {
  if (value === undefined) return {};
  try {
    return { r: membersOf(value) };
  } catch (error) {
    if (!(error instanceof WrongShape)) throw error;
    return { odd: pack(value, 0, { values: 0 }) };
  }
}

/** By no method that a plugin may have replaced. @throws WrongShape, and whatever reading the value throws. */
function membersOf(value: unknown): readonly (readonly [key: string, json: string])[] {
  if (!isRecord(value) || !isPlain(value)) throw new WrongShape('is no plain object');
  const members: (readonly [string, string])[] = [];
  for (const key of Object.keys(value)) members[members.length] = [key, plainText(value[key])];
  return members;
}

function pack(value: unknown, depth: number, count: { values: number }): Packed {
  count.values += 1;
  if (depth > DEEPEST || count.values > MOST) return ['cycle'];
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return ['is', value];
  if (typeof value !== 'object') return [typeof value, String(value)];
  if (Array.isArray(value)) return ['list', Array.from(value, (item: unknown) => pack(item, depth + 1, count))];
  const inherited = depth === 0 ? KNOWN.filter((key) => key in value) : [];
  const members = [...new Set([...Object.keys(value), ...inherited])].map((key) => {
    return [key, pack(Reflect.get(value, key), depth + 1, count)];
  });
  return [isPlain(value) ? 'object' : 'instance', members];
}

/** What {@link packResult} was given, or something of its kind. @throws SyntaxError */
export function unpackResult({ r, odd }: { readonly r?: unknown; readonly odd?: unknown }): unknown {
  if (odd !== undefined) return unpack(odd);
  if (!Array.isArray(r)) return undefined;
  if (r.length > MOST_MEMBERS) return stray('cycle', '');
  return Object.fromEntries(r.map(memberOf));
}

/** @throws Error for what the process's own code never sends */
export function unpackMemo(text: unknown): Memo {
  const memo: unknown = typeof text === 'string' && Buffer.byteLength(text) <= MAX_MEMO ? JSON.parse(text) : undefined;
  if (!isRecord(memo)) throw new Error('it sent a memo that is none');
  return memo as Memo;
}

function memberOf(entry: unknown): readonly [string, unknown] {
  const [name, json]: readonly unknown[] = Array.isArray(entry) ? entry : [];
  const [key, text] = [String(name), String(json)];
  const longest = Object.hasOwn(LONGEST_BY_KEY, key) ? LONGEST_BY_KEY[key] : LONGEST_OTHER;
  if (text.startsWith('"') || text.length <= (longest ?? 0)) return [key, JSON.parse(text)];
  // Large data is read once, later.
  return [key, key === 'data' ? new SentJson(text) : { '': stray('cycle', '') }];
}

class Instance {}

function unpack(packed: unknown, depth = 0, count = { values: 0 }): unknown {
  count.values += 1;
  // Whoever packed it may not have counted.
  const [kind, value]: readonly unknown[] = Array.isArray(packed) && depth <= DEEPEST ? packed : [];
  const inner: readonly unknown[] = Array.isArray(value) ? value : [];
  if (count.values + inner.length > MOST) return stray('cycle', '');
  switch (kind) {
    case 'is':
      return value;
    case 'list':
      return inner.map((item) => unpack(item, depth + 1, count));
    case 'object':
      return Object.fromEntries(inner.map((entry) => entryOf(entry, depth + 1, count)));
    case 'instance':
      return Object.assign(new Instance(), Object.fromEntries(inner.map((entry) => entryOf(entry, depth + 1, count))));
    default:
      return stray(kind, String(value));
  }
}

function entryOf(entry: unknown, depth: number, count: { values: number }): readonly [string, unknown] {
  const [key, value]: readonly unknown[] = Array.isArray(entry) ? entry : [];
  return [String(key), unpack(value, depth, count)];
}

function stray(kind: unknown, text: string): unknown {
  if (kind === 'number') return Number(text);
  if (kind === 'bigint') return 0n;
  if (kind === 'symbol') return Symbol('of a plugin');
  if (kind === 'function') return () => undefined;
  if (kind === 'undefined') return undefined;
  const cycle: unknown[] = [];
  cycle.push(cycle);
  return cycle;
}
