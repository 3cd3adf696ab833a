import type { TSchema } from 'typebox';
import { Check } from 'typebox/value';
import { itemSchema, memberSchema, readSchema, type SchemaNode } from './node.ts';
import { isRecord } from './path.ts';

/**
 * Returns a value with missing members filled in by their schemas' `default`, at any depth. Under `anyOf` and `oneOf` the first
 * branch that the filled value fits counts. TypeBox's own `Default` does this only for schemas made with TypeBox.
 */
export function withDefaults(schema: TSchema, value: unknown): unknown {
  const node = readSchema(schema);
  const given = value === undefined ? defaultOf(node) : value;
  if (given === undefined) return undefined;
  const branches = node.options.map((option) => ({ option, filled: withDefaults(option, given) }));
  const branch = branches.find(({ option, filled }) => Check(option, filled));
  const whole = node.parts.reduce<unknown>((rest, part) => withDefaults(part, rest), branch ? branch.filled : given);
  if (Array.isArray(whole)) return whole.map((item, index) => withDefaults(itemSchema(node, index), item));
  return isRecord(whole) ? membersOf(node, whole) : whole;
}

function defaultOf(node: SchemaNode): unknown {
  const value = node.keyword('default');
  return typeof value === 'function' ? value() : structuredClone(value);
}

function membersOf(node: SchemaNode, value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const missing = [...node.properties.keys()].filter((key) => !Object.hasOwn(value, key));
  const filled = [...Object.entries(value), ...missing.map((key) => [key, undefined] as const)].map(([key, member]) => {
    return [key, withDefaults(memberSchema(node, key) ?? {}, member)] as const;
  });
  return Object.fromEntries(filled.filter(([, member]) => member !== undefined));
}
