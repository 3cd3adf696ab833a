import type { PackedSchema } from './protocol.ts';

/** TypeBox marks what its schemas are with members that JSON does not show. */
const HIDDEN = '~';
const DEEPEST = 100;

class Unpackable extends Error {}

/** A schema, or schemas by name, for the other process; a validator with `parse` stays where it is. */
export function packSchema(value: unknown, mayParse: boolean): PackedSchema {
  if (value === undefined) return { is: 'absent' };
  const canHave = typeof value === 'function' || (typeof value === 'object' && value !== null);
  if (mayParse && canHave && typeof Reflect.get(value, 'parse') === 'function') return { is: 'parser' };
  try {
    return { is: 'schema', packed: pack(value, 0) };
  } catch (error) {
    if (error instanceof Unpackable) return { is: 'problem', problem: error.message };
    throw error;
  }
}

function pack(value: unknown, depth: number): unknown {
  if (depth > DEEPEST) throw new Unpackable('is too deep or in a cycle');
  if (value instanceof RegExp) return { r: [value.source, value.flags] };
  if (typeof value === 'function') throw new Unpackable('has a function');
  if (typeof value === 'bigint') return { b: String(value) };
  if (typeof value !== 'object' || value === null) return { v: value };
  if (Array.isArray(value)) return { a: value.map((item) => pack(item, depth + 1)) };
  const members: unknown[] = [];
  for (const key of Object.getOwnPropertyNames(value)) {
    const isShown = Object.prototype.propertyIsEnumerable.call(value, key);
    const member: unknown = Reflect.get(value, key);
    if (member === undefined || (!isShown && !key.startsWith(HIDDEN))) continue;
    members.push([key, isShown, pack(member, depth + 1)]);
  }
  return { o: members };
}

/** The schema that was packed. */
export function unpackSchema(packed: unknown): unknown {
  if (typeof packed !== 'object' || packed === null) return undefined;
  const { v, a, o, b, r }: { v?: unknown; a?: unknown; o?: unknown; b?: unknown; r?: unknown } = packed;
  if (Array.isArray(a)) return a.map(unpackSchema);
  if (Array.isArray(o)) return object(o);
  if (typeof b === 'string') return BigInt(b);
  if (Array.isArray(r)) return new RegExp(String(r[0]), String(r[1]));
  return v;
}

function object(members: readonly unknown[]): object {
  const made = {};
  for (const member of members) {
    const [key, enumerable, value]: readonly unknown[] = Array.isArray(member) ? member : [];
    const shown = { enumerable: enumerable === true, configurable: true, writable: true };
    Object.defineProperty(made, String(key), { ...shown, value: unpackSchema(value) });
  }
  return made;
}
