import { Composer, type CST, isMap, Lexer, LineCounter, Parser } from 'yaml';
import { errorAt, type Finding } from '../plugins-sdk/define.ts';
import { isRecord, lineage } from '../plugins-sdk/schema/path.ts';
import { decode, readBounded } from './files.ts';
import { ConfigErrors } from './findings.ts';
import { TreeBuilder, type TreeLimits } from './tree.ts';
import { type At, syntaxErrors } from './yaml-faults.ts';

const LIMITS: TreeLimits = { depth: 64, values: 100_000, isExact: true };

/** The content of a config file before interpolation. */
export type Tree = Readonly<Record<string, unknown>>;

/**
 * Reads a YAML 1.2 file (core schema, one document, no other tags) of at most 1 MiB whose top level is a mapping.
 * Each use of an alias is a copy of its value.
 *
 * @throws ConfigErrors naming the file and, in it, line and column.
 */
export async function readConfigFile(file: string): Promise<Tree> {
  return parseConfig(decode(await readBounded(file), file), file);
}

/** Parses the text of a config file. @throws ConfigErrors naming `file`, line and column. */
export function parseConfig(text: string, file: string, limits: TreeLimits = LIMITS): Tree {
  const lines = new LineCounter();
  const at = (offset: number, message: string) => {
    const { line, col } = lines.linePos(offset);
    return errorAt(`${file}:${line}:${col}`, message);
  };
  const [document, surplus] = new Composer(options).compose(bounded(text, lines, at), true, text.length);
  if (document !== undefined) refuse(syntaxErrors([...document.errors, ...document.warnings], text, at));
  if (surplus !== undefined) throw new ConfigErrors([at(surplus.range[0], 'expected one YAML document')]);
  if (!document?.contents) throw new ConfigErrors([errorAt(file, 'is empty')]);
  const builder = new TreeBuilder(at, limits);
  const tree = isMap(document.contents) ? builder.build(document.contents) : undefined;
  if (!isRecord(tree)) throw new ConfigErrors([errorAt(file, 'expected a mapping (key: value) at the top level')]);
  refuse(builder.findings);
  places.set(tree, (path) => {
    const offset = builder.offsets.get(path);
    return offset === undefined ? undefined : lines.linePos(offset).line;
  });
  return tree;
}

/** Finds the line of a value by its config path, for each tree that was read. */
const places = new WeakMap<Tree, (path: string) => number | undefined>();

/** Returns the line of the value at a config path, or of the nearest value that contains it. */
export function lineIn(tree: Tree, path: string): number | undefined {
  for (const ancestor of lineage(path)) {
    const line = places.get(tree)?.(ancestor);
    if (line !== undefined) return line;
  }
  return undefined;
}

/** Most levels of the parser's stack: more than the limit of any tree. */
const MAX_LEVELS = 256;

/**
 * Yields the tokens of a text, up to a bounded depth. The composer recurses for each level, and a regular expression that runs
 * at the end of the stack would end the process.
 */
function* bounded(text: string, lines: LineCounter, at: At): Generator<CST.Token, void> {
  lines.addNewLine(0);
  const parser = new Parser(lines.addNewLine);
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    if (parser.stack.length > MAX_LEVELS) throw new ConfigErrors([at(parser.offset, 'is nested too deeply')]);
  }
  yield* parser.end();
}

function refuse(findings: readonly Finding[]): void {
  if (findings.length > 0) throw new ConfigErrors(findings);
}

const options = {
  version: '1.2',
  schema: 'core',
  merge: false,
  resolveKnownTags: false,
  stringKeys: true,
  // The tree builder checks this. The library would compare every key with every other.
  uniqueKeys: false,
  prettyErrors: false,
} as const;
