import type { TSchema } from 'typebox';
import { DURATION } from '../../plugins-sdk/schema/duration.ts';
import { readSchema, type SchemaNode } from '../../plugins-sdk/schema/node.ts';

/** Makes tables of a config file's keys from its schema. */

interface Row {
  /** Dotted path, `[]` standing for each entry of a list. */
  readonly key: string;
  readonly value: string;
  readonly required: boolean;
  readonly about: string;
  /** The kinds of the mapping that have the key; empty if all have it. */
  readonly kinds: unknown[];
}

/** What is known of the file so far. */
interface Reference {
  /** The rows of the top level, of each mapping there, and of each list of mappings, by its title. */
  readonly sections: Map<string, Row[]>;
  /** The rows of described mappings, by shape: each shape is described once. */
  readonly seen: Map<string, Row>;
}

/** Returns Markdown with a section for the top level, one for each mapping there, and one for each list of mappings. */
export function configReference(schema: TSchema): string {
  const reference: Reference = { sections: new Map(), seen: new Map() };
  describe(reference, '', '', readSchema(schema));
  return [...reference.sections]
    .filter(([, rows]) => rows.length > 0)
    .map(([title, rows]) => `### ${title === '' ? 'Top level' : `\`${title}\``}\n\n${table(rows)}`)
    .join('\n');
}

function table(rows: readonly Row[]): string {
  const lines = rows.map(({ key, value, required, ...row }) => {
    const meaning = row.kinds.length === 0 ? row.about : `with \`type: ${row.kinds.join('`, `')}\`: ${row.about}`;
    const [, about = meaning, fallback] = /^(.*); default (.+)$/.exec(meaning) ?? [];
    const cells = [`\`${key}\``, value, required ? '**required**' : (fallback ?? ''), about];
    return `| ${cells.map((cell) => cell.replace(/[|<]/g, '\\$&')).join(' | ')} |\n`;
  });
  return `| key | value | default | meaning |\n|---|---|---|---|\n${lines.join('')}`;
}

/** Describes the keys of a mapping. @param kind the kind of mapping, where there are several at this place. */
function describe(reference: Reference, title: string, place: string, block: SchemaNode, kind?: unknown): void {
  const rows = reference.sections.get(title) ?? [];
  reference.sections.set(title, rows);
  for (const [name, inner] of block.properties) {
    const key = place === '' ? name : `${place}.${name}`;
    const about = String(readSchema(inner).keyword('description') ?? '');
    const known = rows.find((row) => row.key === key);
    if (known !== undefined) {
      if (kind !== undefined && known.about === about && !known.kinds.includes(kind)) known.kinds.push(kind);
      continue;
    }
    const blocks = blocksOf(inner);
    const twin = blocks.length === 0 ? undefined : reference.seen.get(shapeOf(inner));
    const value = twin === undefined ? valuesOf(inner) : `as \`${twin.key}\``;
    const row = { key, value, required: block.required.includes(name), about, kinds: [kind ?? []].flat() };
    // A mapping without a description only groups its keys, which have rows of their own.
    if (about !== '' || blocks.length === 0) rows.push(row.about === twin?.about ? { ...row, about: '' } : row);
    if (twin !== undefined) continue;
    reference.seen.set(shapeOf(inner), row);
    for (const { block: member, list, kind: own } of blocks) {
      const inside = list ? `${key}[]` : key;
      describe(reference, list || title === '' ? inside : title, inside, member, own);
    }
  }
}

/** Returns a text that identifies the shape of a mapping: without its description, and without the signer's `next`. */
function shapeOf({ description, ...shape }: TSchema & { readonly description?: unknown }): string {
  return JSON.stringify(shape, (key, value) => (key === 'next' ? undefined : value));
}

interface Block {
  readonly block: SchemaNode;
  /** Whether it is an entry of a list. */
  readonly list: boolean;
  /** The kind of the mapping that has these keys, if there are several kinds. */
  readonly kind?: unknown;
}

/** Returns the mappings with known keys that a value may be, or that may be items of it. */
function blocksOf(schema: TSchema): Block[] {
  const options = readSchema(schema).alternatives;
  const mappings = options.filter(isMapping);
  if (mappings.length === 0) {
    const items = options.flatMap(({ items: item }) => (item === undefined ? [] : readSchema(item).alternatives));
    return items.filter(isMapping).map((block) => ({ block, list: true }));
  }
  const kinds = mappings.flatMap(({ marks }) => marks.get('type') ?? []);
  if (kinds.length < 2) return mappings.map((block) => ({ block, list: false }));
  // A mapping with only the key that distinguishes the kinds.
  const type = { enum: kinds, description: 'Which kind it is' };
  const choice = readSchema({ required: ['type'], properties: { type } });
  return [choice, ...mappings].map((block) => ({ block, list: false, kind: block.marks.get('type') }));
}

function isMapping({ keyword }: SchemaNode): boolean {
  return keyword('properties') !== undefined;
}

function valuesOf(schema: TSchema): string {
  const options = readSchema(schema).alternatives;
  if (options.some(({ keyword }) => keyword(DURATION) !== undefined)) return 'duration';
  const choices = options.flatMap((option) => option.choices ?? []);
  const kinds = options.filter((option) => option.choices === undefined).map(kindOf);
  const listed = choices.map((choice) => `\`${String(choice)}\``).join(', ');
  return [...(listed === '' ? [] : [listed]), ...new Set(kinds)].join(' or ');
}

function kindOf(node: SchemaNode): string {
  const [type] = node.types;
  const pattern = node.keyword('pattern');
  if (type === 'array' && node.items === undefined) return 'list';
  if (type === 'array')
    return `list of ${plural(valuesOf(node.items ?? {}))}${node.keyword('minItems') === 1 ? ', not empty' : ''}`;
  if (type === 'object') return !isMapping(node) && node.patterns.length > 0 ? 'mapping of strings' : 'mapping';
  if (pattern === '^0x[0-9a-fA-F]{40}$') return 'address';
  if (pattern === '^https?://') return 'URL';
  if (typeof pattern === 'string') return `string \`${pattern}\``;
  if (type === 'integer') return `integer, ${node.keyword('minimum') ?? ''} to ${node.keyword('maximum') ?? ''}`;
  return type ?? 'anything';
}

function plural(kind: string): string {
  return kind === 'address' ? 'addresses' : `${kind.split(' or ')[0]}s`;
}
