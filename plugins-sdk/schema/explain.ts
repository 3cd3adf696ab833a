import type { TSchema } from 'typebox';
import { Check, Errors } from 'typebox/value';
import { hint, nearest } from '../../lib/suggest.ts';
import { errorAt, type Finding } from '../define.ts';
import { compileSchema } from './compile.ts';
import { isDuration } from './duration.ts';
import { limits } from './limits.ts';
import { hasType, readSchema, type SchemaNode, schemaAt, typeName } from './node.ts';
import { childPath, isRecord, membersIn } from './path.ts';

/** For a value with more parts, compiling its schema takes less time than interpreting it. */
const MANY_PARTS = 200;

/**
 * Returns all faults of a value by its schema, in words that show no values. TypeBox decides whether the value has any.
 * @param path config path of the value.
 * @param parts how many parts the value has, such as endpoints.
 */
export function explain(schema: TSchema, value: unknown, path: string, parts = 1): Finding[] {
  if (parts > MANY_PARTS && compileSchema(schema)?.Check(value)) return [];
  return reasonsFor(schema, value, path).map((reason) => errorAt(reason.path, reason.text));
}

/** One thing that is wrong with a value. */
interface Reason {
  readonly path: string;
  readonly text: string;
  /** A key that is unknown in its mapping, but may be known in one further up. */
  readonly stray?: string;
}

function reasonsFor(schema: TSchema, value: unknown, path: string): Reason[] {
  if (Check(schema, value)) return [];
  const reasons = reasonsOf(readSchema(schema), value, path);
  return reasons.length > 0 ? reasons : [{ path, text: lastResort(schema, value) }];
}

function reasonsOf(node: SchemaNode, value: unknown, path: string): Reason[] {
  if (node.options.length > 0) return explainOptions(node.options.map(readSchema), value, path);
  if (!hasType(node, value)) return [wrongType([node], value, path)];
  if (node.choices !== undefined) return [noChoice(node.choices, value, path)];
  const here = limits(node, value).map((text) => ({ path, text }));
  const parts = node.parts.flatMap((part) => reasonsFor(part, value, path));
  return [...here, ...parts, ...explainMembers(node, value, path)];
}

/** Explains the members of a mapping, or the items of a list. */
function explainMembers(node: SchemaNode, value: unknown, path: string): Reason[] {
  const present = membersIn(value).flatMap(([key, member]) => {
    const at = childPath(path, key);
    const schema = schemaAt(node, key);
    if (schema === undefined) return [unknownKey(at, String(key), node, path)];
    return reasonsFor(schema, member, at).map((reason) => movedUp(reason, node, path));
  });
  const missing = isRecord(value) ? node.required.filter((key) => !Object.hasOwn(value, key)) : [];
  return [...present, ...missing.map((key) => ({ path: childPath(path, key), text: 'required key is missing' }))];
}

function unknownKey(path: string, key: string, node: SchemaNode, parent: string): Reason {
  const [inside, ...others] = placesBelow(node, key, parent);
  if (inside !== undefined && others.length === 0) return misplaced(path, inside);
  const cure = sharing(key) ?? hint(key, [...node.properties.keys()], 'known keys');
  return { path, text: `unknown key${cure}`, stray: key };
}

function misplaced(path: string, place: string): Reason {
  return { path, text: `unknown key here, it belongs at ${place}` };
}

/** Replaces a member's reason if its unknown key belongs in the mapping that holds the member. */
function movedUp(reason: Reason, { properties }: SchemaNode, path: string): Reason {
  const { stray } = reason;
  return stray !== undefined && properties.has(stray) ? misplaced(reason.path, childPath(path, stray)) : reason;
}

/** Returns the config paths at which mappings, or lists of mappings, inside a mapping have a key. */
function placesBelow({ properties }: SchemaNode, key: string, path: string): readonly string[] {
  const has = (schema: TSchema) => readSchema(schema).alternatives.some((node) => node.properties.has(key));
  return [...properties].flatMap(([name, schema]) => {
    const at = childPath(path, name);
    if (has(schema)) return [childPath(at, key)];
    return has(schemaAt(readSchema(schema), 0) ?? {}) ? [childPath(`${at}[]`, key)] : [];
  });
}

/** Returns a hint for keys by which other tools share parts of a file. */
function sharing(key: string): string | undefined {
  if (key === '<<')
    return ', YAML 1.2 has no merge keys: share a whole value, by an anchor (&name) and aliases (*name)';
  if (key.startsWith('x-'))
    return ', there are no extension keys: put the anchor (&name) where its value is used first';
  return undefined;
}

function explainOptions(nodes: readonly SchemaNode[], value: unknown, path: string): Reason[] {
  const choices = choicesIn(nodes);
  const areChoices = nodes.every((node) => node.choices !== undefined);
  if (areChoices && choices.some((choice) => typeof choice === typeof value)) return [noChoice(choices, value, path)];
  const fitting = nodes.filter((node) => node.choices === undefined && hasType(node, value));
  if (fitting.length === 0) return [wrongType(nodes, value, path)];
  return explainTag(fitting, value, path) ?? fewest(fitting.map(({ raw }) => reasonsFor(raw, value, path)));
}

/** Explains a value whose kind depends on a member such as `type`; `undefined` if no member decides it. */
function explainTag(nodes: readonly SchemaNode[], value: unknown, path: string): Reason[] | undefined {
  if (!isRecord(value)) return undefined;
  const tag = [...(nodes[0]?.marks.keys() ?? [])].find((name) => nodes.every(({ marks }) => marks.has(name)));
  if (tag === undefined) return undefined;
  const at = childPath(path, tag);
  const kinds = nodes.map(({ marks }) => marks.get(tag));
  if (!Object.hasOwn(value, tag)) return [{ path: at, text: `required key is missing, expected ${listed(kinds)}` }];
  const meant = nodes[kinds.indexOf(value[tag])];
  return meant === undefined ? [noChoice(kinds, value[tag], at)] : reasonsFor(meant.raw, value, path);
}

/** Returns the alternative with the fewest reasons. */
function fewest(alternatives: readonly Reason[][]): Reason[] {
  return alternatives.reduce((best, next) => (next.length < best.length ? next : best));
}

function noChoice(choices: readonly unknown[], value: unknown, path: string): Reason {
  return { path, text: `expected ${listed(choices)}${choices.length > 1 ? guess(choices, value) : ''}` };
}

function listed(choices: readonly unknown[]): string {
  const texts = [...new Set(choices.map((choice) => JSON.stringify(choice)))];
  return texts.length === 1 ? (texts[0] ?? '') : `one of ${texts.join(', ')}`;
}

const names: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'an integer',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping',
  function: 'a function',
};

function wrongType(nodes: readonly SchemaNode[], value: unknown, path: string): Reason {
  const wanted = new Set(
    nodes.flatMap((node) => node.choices?.map((choice) => JSON.stringify(choice)) ?? kindsOf(node)),
  );
  const found = value === null ? 'nothing' : typeof value === 'boolean' ? 'a boolean' : named(typeName(value));
  const quotable = typeof value === 'number' || typeof value === 'boolean';
  const isText = ({ choices: allowed, types }: SchemaNode) =>
    allowed?.some((choice) => typeof choice === 'string' && Number(choice) === value) ?? types.includes('string');
  const quotes = quotable && nodes.some(isText) ? ', write it in quotes' : '';
  const isShort = typeof value === 'string' && value.length <= 20 && nodes.some(isDuration);
  const shown = isShort ? JSON.stringify(value) : found;
  const text = `expected ${[...wanted].join(' or ')}, found ${shown}${quotes}${guess(choicesIn(nodes), value)}`;
  return { path, text };
}

function choicesIn(nodes: readonly SchemaNode[]): readonly unknown[] {
  return nodes.flatMap(({ choices = [] }) => choices);
}

/** Names the choice that a value is probably a misspelling of. */
function guess(choices: readonly unknown[], value: unknown): string {
  const texts = choices.filter((choice) => typeof choice === 'string');
  const meant = typeof value === 'string' ? nearest(value, texts) : undefined;
  return meant === undefined ? '' : `, did you mean "${meant}"?`;
}

function kindsOf(node: SchemaNode): readonly string[] {
  return isDuration(node)
    ? ['a duration (milliseconds, or a number with a unit: 500ms, 10s, 2m, 1h, 1d)']
    : node.types.map(named);
}

function named(type: string): string {
  return names[type] ?? type;
}

/** Returns TypeBox's words, for a keyword without words of its own here. */
function lastResort(schema: TSchema, value: unknown): string {
  const reason = Errors(schema, value)[0];
  if (reason === undefined) return 'is not allowed';
  return reason.keyword === '~refine' ? reason.params.message : `is not allowed: it ${reason.message}`;
}
