import type { TSchema } from 'typebox';
import { isRecord, isString } from '../../lib/json/value.ts';

/** The part of a JSON Schema that this code reads; TypeBox handles the rest. */
export interface SchemaNode {
  readonly raw: TSchema;
  /** The allowed JSON types; empty for any type. */
  readonly types: readonly string[];
  /** The values that `const` or `enum` allow. */
  readonly choices: readonly unknown[] | undefined;
  /** The branches of `anyOf` and `oneOf`, nested ones included. */
  readonly options: readonly TSchema[];
  /** The schemas of `allOf`. */
  readonly parts: readonly TSchema[];
  /** All schemas that may apply to a value: branches and parts, nested ones included, and this one unless it has branches. */
  readonly alternatives: readonly SchemaNode[];
  readonly properties: ReadonlyMap<string, TSchema>;
  /** The members that have a single possible value, such as `type`, with that value. They tell kinds apart. */
  readonly marks: ReadonlyMap<string, unknown>;
  readonly patterns: readonly (readonly [RegExp, TSchema])[];
  /** The schema of other members; `false` if there must be none. */
  readonly others: TSchema | boolean;
  readonly required: readonly string[];
  /** The schema of a list's items after those of `prefix`. */
  readonly items: TSchema | undefined;
  readonly prefix: readonly TSchema[];
  /** Returns the value of any other keyword. */
  keyword(name: string): unknown;
}

const nodes = new WeakMap<object, SchemaNode>();

/** Reads a schema, perhaps an operator's: malformed keywords count as absent. @throws SyntaxError for a wrong pattern. */
export function readSchema(schema: TSchema): SchemaNode {
  const known = nodes.get(schema);
  if (known !== undefined) return known;
  const node = parse(isRecord(schema) ? schema : {});
  if (isRecord(schema)) nodes.set(schema, node);
  return node;
}

function parse(raw: Readonly<Record<string, unknown>>): SchemaNode {
  const { type, items, additionalProperties: others } = raw;
  const members = membersOf(raw.properties);
  const options = [...schemas(raw.anyOf), ...schemas(raw.oneOf)].flatMap((option) => {
    const { options: inner } = readSchema(option);
    return inner.length === 0 ? [option] : inner;
  });
  const parts = schemas(raw.allOf);
  const alternatives = [...options, ...parts].flatMap((part) => readSchema(part).alternatives);
  const node: SchemaNode = {
    raw,
    types: listOf(Array.isArray(type) ? type : [type], isString),
    choices: choicesOf(raw),
    options,
    parts,
    alternatives,
    properties: new Map(members),
    marks: new Map(
      members.flatMap(([key, member]) => {
        const choices = choicesOf(member);
        return choices?.length === 1 ? [[key, choices[0]]] : [];
      }),
    ),
    patterns: membersOf(raw.patternProperties).map(([pattern, schema]) => [new RegExp(pattern, 'u'), schema]),
    others: others === false || isRecord(others) ? others : true,
    required: listOf(raw.required, isString),
    items: isRecord(items) ? items : undefined,
    prefix: Array.isArray(items) ? schemas(items) : schemas(raw.prefixItems),
    keyword: (name) => (Object.hasOwn(raw, name) ? raw[name] : undefined),
  };
  if (options.length === 0) alternatives.unshift(node);
  return node;
}

/** Returns the schema of a member, or of the item of a list; `undefined` if its key is not allowed. */
export function schemaAt(node: SchemaNode, key: string | number): TSchema | undefined {
  if (typeof key === 'number') return node.prefix[key] ?? node.items ?? {};
  const named = node.properties.get(key) ?? node.patterns.find(([pattern]) => pattern.test(key))?.[1];
  return named ?? (node.others === true ? {} : node.others || undefined);
}

/** Returns whether a value has one of the JSON types that a schema names. */
export function hasType({ types, choices }: SchemaNode, value: unknown): boolean {
  const type = typeName(value);
  const is = (name: string) => name === type || (name === 'integer' && Number.isInteger(value));
  if (types.length > 0) return types.some(is);
  return choices === undefined || choices.some((choice) => typeName(choice) === type);
}

/** Returns the JSON type of a value. */
export function typeName(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function choicesOf(raw: { readonly const?: unknown; readonly enum?: unknown }): readonly unknown[] | undefined {
  if (Object.hasOwn(raw, 'const')) return [raw.const];
  return Array.isArray(raw.enum) ? raw.enum : undefined;
}

function schemas(value: unknown): TSchema[] {
  return listOf(value, isRecord);
}

function membersOf(value: unknown): [string, TSchema][] {
  const members: [string, unknown][] = Object.entries(isRecord(value) ? value : {});
  // The schema `true` allows any value, as an empty one does.
  const asked = members.map(([key, member]) => [key, member === true ? {} : member] as const);
  return asked.flatMap(([key, member]) => (isRecord(member) ? [[key, member]] : []));
}

function listOf<T>(value: unknown, is: (item: unknown) => item is T): T[] {
  return Array.isArray(value) ? value.filter(is) : [];
}
