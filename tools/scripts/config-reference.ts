import { DURATION_PATTERN } from '../../plugins-sdk/schema/duration.ts';

/** Makes tables of a config file's keys out of its published JSON Schema. */

type Schema = Readonly<Record<string, unknown>>;

interface Row {
  /** Dotted path, `[]` standing for each entry of a list. */
  readonly key: string;
  readonly value: string;
  readonly required: boolean;
  readonly about: string;
  /** Of which kinds the mapping must be to have the key; none: of any. */
  readonly kinds: string[];
}

interface Section {
  readonly title: string;
  readonly rows: readonly Row[];
}

/** Markdown: a section for the top level, one for each mapping there, and one for each list of mappings. */
export function configReference(schema: object): string {
  const sections = sectionsOf({ ...schema }, '', new Map());
  return sections
    .filter(({ rows }) => rows.length > 0)
    .map(({ title, rows }) => `### ${title === '' ? 'Top level' : `\`${title}\``}\n\n${table(rows)}`)
    .join('\n');
}

function table(rows: readonly Row[]): string {
  const lines = rows.map(({ key, value, required, ...row }) => {
    const [first, ...others] = row.kinds;
    const list = [first, ...others.map((kind) => kind.replace(/^type: /, ''))].map((kind) => `\`${kind}\``).join(', ');
    const meaning = first === undefined ? row.about : `with ${list}: ${row.about}`;
    const [, about = meaning, fallback] = /^(.*); default (.+)$/.exec(meaning) ?? [];
    const cells = [`\`${key}\``, value, required ? '**required**' : (fallback ?? ''), about];
    return `| ${cells.map((cell) => cell.replace(/[|<]/g, '\\$&')).join(' | ')} |\n`;
  });
  return `| key | value | default | meaning |\n|---|---|---|---|\n${lines.join('')}`;
}

/** @param seen where each mapping stood first, by its JSON text: it is described once. */
function sectionsOf(schema: Schema, title: string, seen: Map<string, string>): Section[] {
  const rows: Row[] = [];
  const later: Section[] = [];
  const visit = (block: Schema, parent: string, kind?: string): void => {
    const required: unknown = block.required;
    for (const [name, member] of Object.entries(recordOf(block.properties))) {
      const key = parent === '' ? name : `${parent}.${name}`;
      const inner = recordOf(member);
      const about = textOrEmpty(simplify(inner).description);
      const known = rows.find((row) => row.key === key);
      if (known !== undefined) {
        if (kind !== undefined && known.about === about && !known.kinds.includes(kind)) known.kinds.push(kind);
        continue;
      }
      const twin = twinOf(inner, key, seen);
      // A mapping that nothing is said of only holds its keys together, and those have rows of their own.
      if (about !== '' || twin !== undefined || blocksOf(inner).length === 0) {
        rows.push({
          key,
          value: valuesOf(inner) + (twin === undefined ? '' : `, as \`${twin}\``),
          required: Array.isArray(required) && required.includes(name),
          about,
          kinds: kind === undefined ? [] : [kind],
        });
      }
      if (twin === undefined) descend(inner, key);
    }
  };
  const descend = (inner: Schema, key: string): void => {
    for (const { block, list, kind } of blocksOf(inner)) {
      if (list) later.push(...sectionsOf(block, `${key}[]`, seen));
      else if (title === '') later.push(...sectionsOf(block, key, seen));
      else visit(block, key, kind);
    }
  };
  visit(schema, title);
  return [{ title, rows }, ...later];
}

/** The path at which the same mapping has been described. */
function twinOf(schema: Schema, key: string, seen: Map<string, string>): string | undefined {
  if (blocksOf(schema).length === 0) return undefined;
  const text = JSON.stringify(schema);
  const known = seen.get(text);
  if (known === undefined) seen.set(text, key);
  return known;
}

interface Block {
  readonly block: Schema;
  /** Whether it is an entry of a list. */
  readonly list: boolean;
  /** Of which kind the mapping must be to have these keys. */
  readonly kind?: string;
}

/** The mappings with known keys that a value may be or list. */
function blocksOf(schema: Schema): Block[] {
  const options = optionsOf(schema);
  const mappings = options.filter(({ properties }) => properties !== undefined);
  const isTagged = mappings.length > 1 && typeTag(mappings[0] ?? {}) !== undefined;
  const here = mappings.map((block) => ({ block, list: false, ...(mappings.length > 1 && { kind: markOf(block) }) }));
  if (here.length > 0) return isTagged ? [{ block: tagsOf(mappings), list: false }, ...here] : here;
  const items = options.flatMap(({ items: item }) => (item === undefined ? [] : optionsOf(recordOf(item))));
  return items.filter(({ properties }) => properties !== undefined).map((block) => ({ block, list: true }));
}

function typeTag(block: Schema): unknown {
  return simplify(recordOf(recordOf(block.properties).type)).const;
}

/** What tells a mapping from others that may stand in its place: its type, or its first key. */
function markOf(block: Schema): string {
  const type = typeTag(block);
  return type === undefined ? (Object.keys(recordOf(block.properties))[0] ?? '') : `type: ${type}`;
}

/** A mapping of nothing but the key that tells kinds apart. */
function tagsOf(mappings: readonly Schema[]): Schema {
  const type = { enum: mappings.map(typeTag), description: 'Which kind it is' };
  return { required: ['type'], properties: { type } };
}

/** What a value may be: nested alternatives side by side, without the text with a variable that may stand for anything. */
function optionsOf(schema: Schema): Schema[] {
  const { anyOf } = schema;
  if (!Array.isArray(anyOf)) return [schema];
  return anyOf
    .map(recordOf)
    .filter(({ $ref }) => $ref === undefined)
    .flatMap(optionsOf);
}

/** The one alternative with the description of the whole, or the whole. */
function simplify(schema: Schema): Schema {
  const [only, ...others] = optionsOf(schema);
  return only === undefined || others.length > 0 ? schema : { ...only, ...schema };
}

function valuesOf(schema: Schema): string {
  const options = optionsOf(schema);
  if (options.some(({ pattern }) => pattern === DURATION_PATTERN)) return 'duration';
  const choices = options.flatMap((option) => choicesOf(option) ?? []);
  const kinds = options.filter((option) => choicesOf(option) === undefined).map(kindOf);
  const listed = choices.map((choice) => `\`${String(choice)}\``).join(', ');
  return [...(listed === '' ? [] : [listed]), ...new Set(kinds)].join(' or ');
}

function choicesOf(schema: Schema): readonly unknown[] | undefined {
  if (schema.const !== undefined) return [schema.const];
  return Array.isArray(schema.enum) ? schema.enum : undefined;
}

function kindOf(schema: Schema): string {
  const { type, pattern, items, minItems, properties, patternProperties } = schema;
  if (type === 'array' && items === undefined) return 'list';
  if (type === 'array') return `list of ${plural(valuesOf(recordOf(items)))}${minItems === 1 ? ', not empty' : ''}`;
  if (type === 'object') return properties === undefined && patternProperties ? 'mapping of strings' : 'mapping';
  if (pattern === '^0x[0-9a-fA-F]{40}$') return 'address';
  if (pattern === '^https?://') return 'URL';
  if (typeof pattern === 'string') return `string \`${pattern}\``;
  if (type === 'integer') return `integer, ${textOrEmpty(schema.minimum)} to ${textOrEmpty(schema.maximum)}`;
  return textOrEmpty(type) || 'anything';
}

function plural(kind: string): string {
  return kind === 'address' ? 'addresses' : `${kind.split(' or ')[0]}s`;
}

function textOrEmpty(value: unknown): string {
  return value === undefined ? '' : String(value);
}

function recordOf(value: unknown): Schema {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
