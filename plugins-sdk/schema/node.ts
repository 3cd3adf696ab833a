import type { TSchema } from 'typebox';
import { isRecord } from './path.ts';

/** What of a JSON Schema the config loader understands; everything else is left to TypeBox. */
export interface SchemaNode {
  readonly raw: TSchema;
  /** Empty: any type. */
  readonly types: readonly string[];
  /** The values that `const` or `enum` allow. */
  readonly choices: readonly unknown[] | undefined;
  /** The branches of `anyOf` and `oneOf`, nested ones included. */
  readonly options: readonly TSchema[];
  /** `allOf` */
  readonly parts: readonly TSchema[];
  readonly properties: ReadonlyMap<string, TSchema>;
  readonly patterns: readonly (readonly [RegExp, TSchema])[];
  /** The schema of other members; `false`: there must be none. */
  readonly others: TSchema | boolean;
  readonly required: readonly string[];
  /** The schema of a list's items from `prefix.length` on. */
  readonly items: TSchema | undefined;
  readonly prefix: readonly TSchema[];
  /** Any other keyword's value. */
  keyword(name: string): unknown;
}

const nodes = new WeakMap<object, SchemaNode>();

/** Reads a schema, which may be an operator's: what is malformed counts as absent. */
export function readSchema(schema: TSchema): SchemaNode {
  const known = nodes.get(schema);
  if (known !== undefined) return known;
  const node = parse(isRecord(schema) ? schema : {});
  if (isRecord(schema)) nodes.set(schema, node);
  return node;
}

function parse(raw: Readonly<Record<string, unknown>>): SchemaNode {
  const { type, items } = raw;
  const members = Object.entries(isRecord(raw.properties) ? raw.properties : {});
  const patterns = Object.entries(isRecord(raw.patternProperties) ? raw.patternProperties : {});
  return {
    raw,
    types: listOf(Array.isArray(type) ? type : [type], isString),
    choices: Object.hasOwn(raw, 'const') ? [raw.const] : Array.isArray(raw.enum) ? raw.enum : undefined,
    options: [...schemas(raw.anyOf), ...schemas(raw.oneOf)].flatMap((option) => {
      const { options } = readSchema(option);
      return options.length === 0 ? [option] : options;
    }),
    parts: schemas(raw.allOf),
    properties: new Map(members.filter((member): member is [string, TSchema] => isSchema(member[1]))),
    patterns: patterns.flatMap(([pattern, schema]) => (isSchema(schema) ? [[new RegExp(pattern, 'u'), schema]] : [])),
    others:
      raw.additionalProperties === false ? false : isSchema(raw.additionalProperties) ? raw.additionalProperties : true,
    required: listOf(raw.required, isString),
    items: isSchema(items) ? items : undefined,
    prefix: Array.isArray(items) ? schemas(items) : schemas(raw.prefixItems),
    keyword: (name) => (Object.hasOwn(raw, name) ? raw[name] : undefined),
  };
}

/** The schema of a member, if its key is known or any key is. */
export function memberSchema(node: SchemaNode, key: string): TSchema | undefined {
  const named = node.properties.get(key) ?? node.patterns.find(([pattern]) => pattern.test(key))?.[1];
  return named ?? (node.others === true ? {} : node.others || undefined);
}

export function itemSchema(node: SchemaNode, index: number): TSchema {
  return node.prefix[index] ?? node.items ?? {};
}

/** Whether the value is of one of the JSON types that the schema names. */
export function hasType({ types, choices }: SchemaNode, value: unknown): boolean {
  const type = typeName(value);
  const is = (name: string) => name === type || (name === 'integer' && Number.isInteger(value));
  if (types.length > 0) return types.some(is);
  return choices === undefined || choices.some((choice) => typeName(choice) === type);
}

/** The JSON type of a value. */
export function typeName(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function schemas(value: unknown): TSchema[] {
  return listOf(value, isSchema);
}

function listOf<T>(value: unknown, is: (item: unknown) => item is T): T[] {
  return Array.isArray(value) ? value.filter(is) : [];
}

function isSchema(value: unknown): value is TSchema {
  return isRecord(value);
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}
