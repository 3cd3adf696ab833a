import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The entries of the SDK that package.json exports for plugins. */
export const ENTRIES = ['index', 'config', 'openapi', 'state', 'signing', 'observe'] as const;

const fileOf = (entry: string) => fileURLToPath(new URL(`../../plugins-sdk/${entry}.ts`, import.meta.url));

/** A name that an entry of the SDK exports. */
export interface SdkName {
  readonly name: string;
  /** The kind of declaration, such as `function`; a name may be a type and a value. */
  readonly kind: string;
  /** The docstring as Markdown on one line; empty if there is none. */
  readonly about: string;
}

const DOC = '(?:/\\*\\*((?:(?!\\*/)[^])*)\\*/\\n)?';
/** Matches imports, too: a name may be imported first, and exported by another statement. */
const PASSED = /(?:im|ex)port (?:type )?\{([^}]*)\} from '([^']+)';/g;
/** Matches the names that an entry re-exports or declares itself. */
const EXPORTED = /^export (?:(?:type )?\{([^}]*)\} from|(?:class|const|function|interface|type) (\w+))/gm;

/** Returns the names in a clause such as `{ a, type B, c as d }`. */
function namesIn(clause: string): string[] {
  return clause.split(',').flatMap((word) => word.trim().replace(/^(?:type |\w+ as )/, '') || []);
}

/** Returns a docstring without its stars. Tags become sentences, since a table cell has no lines. */
function asMarkdown(doc: string): string {
  return doc
    .replace(/^ *\*? ?/gm, '')
    .replace(/\s+/g, ' ')
    .replace(/\{@link ([\w.]+)\}/g, '`$1`')
    .replace(/@param (\w+)(?: -)? /g, '`$1`: ')
    .replace(/@returns /g, 'Returns ')
    .replace(/@throws (?:\{(\w+)\} ?)?/g, 'Throws $1')
    .replaceAll('|', '\\|')
    .trim();
}

/** Finds the declaration of a name through the files that re-export it. A library's name is documented at its re-export. */
function found(file: string, name: string): SdkName {
  const text = readFileSync(file, 'utf8');
  const declared = [
    ...text.matchAll(new RegExp(`${DOC}export (?:async )?(class|const|function|interface|type) ${name}\\b`, 'g')),
  ];
  if (declared.length > 0) {
    const kind = declared.map(([, , word]) => word).join(', ');
    return { name, kind, about: asMarkdown(declared.map(([, doc = '']) => doc).join(' ')) };
  }
  const passed = [...text.matchAll(PASSED)].findLast(([, clause = '']) => namesIn(clause).includes(name));
  const [statement = '', , from = ''] = passed ?? [];
  if (passed === undefined) throw new Error(`${name} is declared nowhere: ${file}`);
  const [, original = name] = passed[1]?.match(new RegExp(`(\\w+) as ${name}\\b`)) ?? [];
  if (from.startsWith('.')) return { ...found(join(dirname(file), from), original), name };
  const doc = text.slice(0, passed.index).match(/\/\*\*((?:(?!\*\/).)*)\*\/\n$/s)?.[1] ?? '';
  return { name, kind: statement.startsWith('export type') ? 'type' : 'const', about: asMarkdown(doc) };
}

/** Returns the names that authors may import from the given entries, in the order of each. */
export function sdkNames(entries: readonly string[] = ENTRIES): SdkName[] {
  return entries.map(fileOf).flatMap((file) => {
    const statements = [...readFileSync(file, 'utf8').matchAll(EXPORTED)];
    return statements.flatMap(([, clause = '', name = clause]) => namesIn(name)).map((name) => found(file, name));
  });
}

/** Matches a comment that lists names, and the table of these names after it. */
const TABLE = /<!-- names: (.+) -->\n\n(?:(?:\|.*\n)+\n)?/g;

/** Returns the names in the comments of a page. */
export function namesOnPage(page: string): string[] {
  return [...page.matchAll(TABLE)].flatMap(([, names = '']) => names.split(' '));
}

/** Returns the first sentence of a docstring: editors show the rest. */
function firstSentence(about: string): string {
  return /^.*?[.!?](?= |$)(?<!\b(?:e\.g|i\.e)\.)/.exec(about)?.[0] ?? about;
}

/** Returns the page with a table of the names after each comment that lists them. */
export function sdkReference(page: string): string {
  const known = new Map(sdkNames().map((entry) => [entry.name, entry]));
  const row = (name: string): string => {
    const { kind, about } = known.get(name) ?? { kind: '', about: '' };
    if (about === '') throw new Error(`docs/sdk.md: ${name} is not exported, or has no docstring`);
    return `| \`${name}\` | ${kind} | ${firstSentence(about)} |\n`;
  };
  return page.replace(TABLE, (_, names: string) => {
    const rows = names.split(' ').map(row);
    return `<!-- names: ${names} -->\n\n| name | kind | meaning |\n|---|---|---|\n${rows.join('')}\n`;
  });
}
