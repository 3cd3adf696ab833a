import type { TSchema } from 'typebox';
import { exactNumber } from '../../lib/json/numbers.ts';
import { type Finding, warningAt } from '../define.ts';
import { DURATION, isDuration, millisecondsOf } from './duration.ts';
import { hasType, readSchema, type SchemaNode, schemaAt } from './node.ts';
import { childPath, mapMembers, membersIn } from './path.ts';

/** Converts a text or number at a config path; `nodes` are the schemas that may apply there. */
export type ConvertLeaf = (given: string | number, nodes: readonly SchemaNode[], path: string) => unknown;

/** Returns a copy of a value with each text and number converted by `leaf`, along its schema. Durations become milliseconds. */
export function convert(schema: TSchema, value: unknown, path: string, leaf: ConvertLeaf): unknown {
  return visit([schema], value, path, leaf);
}

function visit(schemas: readonly TSchema[], value: unknown, path: string, leaf: ConvertLeaf): unknown {
  const nodes = schemas.flatMap((schema) => readSchema(schema).alternatives);
  if (typeof value === 'string' || typeof value === 'number') return decoded(leaf(value, nodes, path), nodes);
  const candidates = nodes.filter((node) => hasType(node, value));
  const agreeing = candidates.filter(({ marks }) =>
    membersIn(value).every(([key, member]) => !marks.has(String(key)) || marks.get(String(key)) === member),
  );
  const fitting = agreeing.length > 0 ? agreeing : candidates;
  return mapMembers(value, (member, key) => {
    const inner = fitting.map((node) => schemaAt(node, key)).filter((schema) => schema !== undefined);
    return visit(inner, member, childPath(path, key), leaf);
  });
}

function decoded(value: unknown, nodes: readonly SchemaNode[]): unknown {
  const isTime = typeof value === 'string' && nodes.some(isDuration) && !nodes.some((node) => acceptsText(node, value));
  return isTime ? (millisecondsOf(value) ?? value) : value;
}

/** Returns the number or boolean that a variable's text stands for, if the schemas allow one and no text; else the text. */
export function fromText(text: string, nodes: readonly SchemaNode[]): unknown {
  if (nodes.length === 0 || nodes.some((node) => acceptsText(node, text))) return text;
  if (wants(nodes, ['boolean']) && (text === 'true' || text === 'false')) return text === 'true';
  return wants(nodes, ['number', 'integer']) ? (exactNumber(text) ?? text) : text;
}

function wants(nodes: readonly SchemaNode[], types: readonly string[]): boolean {
  return nodes.some((node) => node.types.some((type) => types.includes(type)));
}

function acceptsText({ types, choices }: SchemaNode, text: string): boolean {
  if (choices !== undefined) return choices.includes(text);
  return types.length === 0 || types.includes('string');
}

/** Returns a conversion that also warns of each number that is a duration in milliseconds but looks like seconds. */
export function warningOfShort(leaf: ConvertLeaf, findings: Finding[]): ConvertLeaf {
  return (given, nodes, path) => {
    const plain = typeof given === 'string' ? fromText(given, nodes) : given;
    const isShort = (node: SchemaNode) => Number(plain) > 0 && Number(plain) < Number(node.keyword(DURATION) ?? 0);
    if (typeof plain === 'number' && nodes.some(isShort))
      findings.push(warningAt(path, `is in milliseconds: for seconds write ${plain}s`));
    return leaf(given, nodes, path);
  };
}
