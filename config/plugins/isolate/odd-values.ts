/**
 * Values that JSON would change or drop on the way, such as `NaN`, functions and instances of classes: they arrive as values
 * of the same kind, so that a result is read, and refused, as it is where plugin and service share a process.
 */

/** Levels and values after which something counts as a cycle. */
const DEEPEST = 300;
const MOST = 100_000;

type Packed = readonly [kind: string, value?: unknown];

/** Members of results that count also where they are inherited. */
const KNOWN = ['reject', 'status', 'message', 'parameters', 'data'];

class Odd extends Error {}

/** A copy as JSON can carry it. @throws where it cannot, and whatever reading the value throws. */
function plainCopy(value: unknown, depth = 0): unknown {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (typeof value !== 'object' || depth > DEEPEST) throw new Odd();
  if (Array.isArray(value)) {
    const copy: unknown[] = [];
    for (let i = 0; i < value.length; i += 1) copy[i] = plainCopy(value[i] ?? null, depth + 1);
    return copy;
  }
  if (!isPlain(value)) throw new Odd();
  const copy: Record<string, unknown> = Object.create(null);
  for (const key of Object.keys(value)) {
    const member: unknown = Reflect.get(value, key);
    // A member that is there and has no value is read as such at the top only.
    if (member !== undefined) copy[key] = plainCopy(member, depth + 1);
    else if (depth === 0) throw new Odd();
  }
  return copy;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** @returns the members of a report that carry the value. */
export function packResult(value: unknown): { readonly r?: unknown; readonly odd?: unknown } {
  if (value === undefined) return {};
  try {
    return { r: plainCopy(value) };
  } catch (error) {
    if (!(error instanceof Odd)) throw error;
    return { odd: pack(value, 0, { values: 0 }) };
  }
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

/** What {@link packResult} was given, or something of its kind. */
export function unpackResult({ r, odd }: { readonly r?: unknown; readonly odd?: unknown }): unknown {
  return odd === undefined ? r : unpack(odd);
}

class Instance {}

function unpack(packed: unknown): unknown {
  const [kind, value]: readonly unknown[] = Array.isArray(packed) ? packed : [];
  const inner: readonly unknown[] = Array.isArray(value) ? value : [];
  switch (kind) {
    case 'is':
      return value;
    case 'list':
      return inner.map(unpack);
    case 'object':
      return Object.fromEntries(inner.map(entryOf));
    case 'instance':
      return Object.assign(new Instance(), Object.fromEntries(inner.map(entryOf)));
    default:
      return stray(kind, String(value));
  }
}

function entryOf(entry: unknown): readonly [string, unknown] {
  const [key, value]: readonly unknown[] = Array.isArray(entry) ? entry : [];
  return [String(key), unpack(value)];
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
