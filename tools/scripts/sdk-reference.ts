import { join } from 'node:path';
import { API, type Checker, type Symbol as Declared, SymbolFlags } from 'typescript/unstable/sync';
import { root } from './package/run.ts';

/** The entries of the SDK that package.json exports for plugins. */
const ENTRIES = ['index', 'config', 'openapi', 'state', 'signing', 'observe'];

/** A name that an entry of the SDK exports. */
export interface SdkName {
  readonly name: string;
  /** The kind of declaration, such as `function`; a name may be a type and a value. */
  readonly kind: string;
  /** The docstring without its tags; empty if there is none. */
  readonly about: string;
}

const KINDS = [
  ['class', SymbolFlags.Class],
  ['function', SymbolFlags.Function],
  ['interface', SymbolFlags.Interface],
  ['type', SymbolFlags.TypeAlias],
  ['const', SymbolFlags.Variable],
  ['namespace', SymbolFlags.Module],
] as const;

/** Describes a name by its declaration. A library's name has its docstring at its re-export. */
function described(checker: Checker, name: string, symbol: Declared, about = ''): SdkName {
  const doc = about || checker.getDocumentationCommentOfSymbol(symbol);
  const next = symbol.flags & SymbolFlags.Alias ? checker.getImmediateAliasedSymbol(symbol) : undefined;
  if (next !== undefined) return described(checker, name, next, doc);
  const kinds = KINDS.flatMap(([kind, flag]) => (symbol.flags & flag ? [kind] : []));
  return { name, kind: kinds.join(', '), about: doc.replace(/\s+/g, ' ').replaceAll('|', '\\|') };
}

/** Returns the names that authors may import from the given entries. */
export function sdkNames(entries: readonly string[] = ENTRIES): SdkName[] {
  const compiler = new API({ cwd: root });
  const openProjects = [join(root, 'tools/scripts/tsconfig.build.json')];
  const [project] = compiler.updateSnapshot({ openProjects }).getProjects();
  const names = entries.flatMap((entry) => {
    const file = project?.program.getSourceFile(join(root, `plugins-sdk/${entry}.ts`));
    const module = file && project?.checker.getSymbolAtLocation(file);
    if (project === undefined || module === undefined) throw new Error(`plugins-sdk/${entry}.ts exports nothing`);
    const { checker } = project;
    return checker.getExportsOfModule(module).map((symbol) => described(checker, symbol.name, symbol));
  });
  compiler.close();
  return names;
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
