import type { TSchema } from 'typebox';
import { Check, Default } from 'typebox/value';
import { type ConfigSchema, errorAt, type Finding } from '../define.ts';
import { close } from './close.ts';
import { type ConvertLeaf, convert, warningOfShort } from './convert.ts';
import { explain } from './explain.ts';
import { readSchema, type SchemaNode, schemaAt } from './node.ts';
import { childPath, isRecord, mapMembers } from './path.ts';
import { checkTypes } from './types.ts';

/** A plugin's `config` block. */
export interface Block {
  readonly value: unknown;
  /** The block's config path. */
  readonly path: string;
  readonly leaf: ConvertLeaf;
  /** Returns a foreign error as one line of text, without the values of variables. */
  redact(error: unknown): string;
  /** Whether it holds samples in place of unset variables. */
  readonly doubtful: boolean;
}

/**
 * Validates a plugin's `config` block; a missing block counts as an empty mapping. The result shares no objects with the block.
 * @param schema the plugin's schema; a plugin without one takes no config.
 */
export async function validateOwn(schema: ConfigSchema | undefined, block: Block) {
  if (schema === undefined) {
    const findings = block.value === undefined ? [] : [errorAt(block.path, 'the plugin takes no config')];
    return { value: undefined, findings };
  }
  const value = structuredClone(block.value ?? {});
  if (!isParser(schema)) return checkWith(schema, value, block);
  // A parser's findings about samples would say nothing about the real values.
  if (block.doubtful) return { value, findings: [] };
  try {
    return { value: await schema.parse(value), findings: [] };
  } catch (error) {
    return { value, findings: parserFindings(error, block) };
  }
}

/** Returns whether a value can be a plugin's `configSchema`. */
export function isConfigSchema(value: unknown): value is ConfigSchema {
  return isRecord(value) || isParser(value);
}

function isParser(schema: unknown): schema is { parse(value: unknown): unknown } {
  return typeof Object(schema).parse === 'function';
}

function checkWith(schema: TSchema, value: unknown, { path, leaf, redact }: Block) {
  try {
    checkTypes(schema);
    const closed = close(schema);
    const short: Finding[] = [];
    // TypeBox's `Default` also follows references; `withDefaults` fills in defaults of any schema.
    const complete = withDefaults(closed, Default(closed, convert(closed, value, path, warningOfShort(leaf, short))));
    return { value: complete, findings: [...explain(closed, complete, path), ...short] };
  } catch (error) {
    return { value, findings: [errorAt(path, `the plugin's configSchema cannot be used: ${redact(error)}`)] };
  }
}

/** Returns a parser's error as findings. Validators such as zod list places and messages in `issues`. */
function parserFindings(error: unknown, { path, redact }: Block): Finding[] {
  const issues = isRecord(error) && Array.isArray(error.issues) ? error.issues.filter(isRecord) : [];
  if (issues.length === 0) return [errorAt(path, redact(error))];
  return issues.map((issue) => {
    const keys: readonly unknown[] = Array.isArray(issue.path) ? issue.path : [];
    const at = keys.reduce<string>(
      (parent, key) => childPath(parent, typeof key === 'number' ? key : String(key)),
      path,
    );
    return errorAt(at, redact(issue.message));
  });
}

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
  const absent = Object.fromEntries([...node.properties.keys()].map((key) => [key, undefined]));
  // The given members keep their order, and the absent ones follow.
  const members = isRecord(whole) ? { ...whole, ...absent, ...whole } : whole;
  return mapMembers(members, (member, key) => withDefaults(schemaAt(node, key) ?? {}, member));
}

function defaultOf(node: SchemaNode): unknown {
  const value = node.keyword('default');
  return typeof value === 'function' ? value() : structuredClone(value);
}
