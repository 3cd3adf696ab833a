import {
  Composer,
  type CST,
  type Document,
  isMap,
  Lexer,
  LineCounter,
  type ParsedNode,
  Parser,
  type YAMLError,
} from 'yaml';
import type { Finding } from '../plugins-sdk/define.ts';
import { isRecord, lineage } from '../plugins-sdk/schema/path.ts';
import { decode, readBounded } from './files.ts';
import { ConfigErrors, errorAt } from './findings.ts';
import { TreeBuilder, type TreeLimits } from './tree.ts';

const LIMITS: TreeLimits = { depth: 64, values: 100_000, isExact: true };
/** The document and a scalar are on the parser's stack, too. */
const BESIDE = 2;
/** One mistake in YAML often causes many more messages further down. */
const MAX_SYNTAX_ERRORS = 5;
/** Messages among which mistakes with variables are looked for. */
const MAX_EXAMINED = 50;

/** What a configuration file says, before interpolation. */
export type Tree = Readonly<Record<string, unknown>>;

/**
 * Reads a YAML 1.2 file (core schema, one document, no other tags) of at most 1 MiB whose top level is a mapping.
 * Aliased values are shared, not copied.
 *
 * @throws ConfigErrors naming the file and, in it, line and column.
 */
export async function readConfigFile(file: string): Promise<Tree> {
  return parseConfig(decode(await readBounded(file), file), file);
}

/** @throws ConfigErrors naming `file`, line and column. */
export function parseConfig(text: string, file: string, limits: TreeLimits = LIMITS): Tree {
  const lines = new LineCounter();
  const at = (offset: number, message: string) => {
    const { line, col } = lines.linePos(offset);
    return errorAt(`${file}:${line}:${col}`, message);
  };
  const document = parse(text, lines, at, limits);
  refuse(syntaxErrors([...document.errors, ...document.warnings], text, at));
  if (document.contents === null) throw new ConfigErrors([errorAt(file, 'is empty')]);
  if (!isMap(document.contents)) {
    throw new ConfigErrors([errorAt(file, 'expected a mapping (key: value) at the top level')]);
  }
  const builder = new TreeBuilder(at, limits);
  const tree = builder.build(document.contents);
  refuse(builder.findings);
  const found = isRecord(tree) ? tree : {};
  places.set(found, (path) => {
    const offset = builder.offsets.get(path);
    return offset === undefined ? undefined : lines.linePos(offset).line;
  });
  return found;
}

/** For each file that was read, the line of a value by its config path. */
const places = new WeakMap<Tree, (path: string) => number | undefined>();

/** The line of a file at which the value of a config path stands, or the nearest value that holds it. */
export function lineIn(tree: Tree, path: string): number | undefined {
  for (const ancestor of lineage(path)) {
    const line = places.get(tree)?.(ancestor);
    if (line !== undefined) return line;
  }
  return undefined;
}

function refuse(findings: readonly Finding[]): void {
  if (findings.length > 0) throw new ConfigErrors(findings);
}

type At = (offset: number, message: string) => Finding;

const options = {
  version: '1.2',
  schema: 'core',
  merge: false,
  resolveKnownTags: false,
  stringKeys: true,
  // Checked by the tree builder: the library compares every key with every other.
  uniqueKeys: false,
  prettyErrors: false,
} as const;

/** @throws ConfigErrors when there is more than one document, or one that is nested too deeply. */
function parse(text: string, lines: LineCounter, at: At, { depth }: TreeLimits): Document.Parsed<ParsedNode> {
  const tokens = boundedTokens(text, lines, at, depth);
  const documents = new Composer<ParsedNode>(options).compose(tokens, true, text.length);
  const [document, surplus] = [...documents];
  if (surplus !== undefined) throw new ConfigErrors([at(surplus.range[0], 'expected one YAML document')]);
  // Composing with `forceDoc` gives a document always.
  if (document === undefined) throw new ConfigErrors([at(0, 'is empty')]);
  return document;
}

/** Tokens of the syntax tree. The parser needs no call stack, what comes after it does: depth is bounded here. */
function* boundedTokens(text: string, lines: LineCounter, at: At, depth: number): Generator<CST.Token, void> {
  lines.addNewLine(0);
  const parser = new Parser(lines.addNewLine);
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    if (parser.stack.length > depth + BESIDE) {
      throw new ConfigErrors([at(parser.offset, `nested more than ${depth} levels deep`)]);
    }
  }
  yield* parser.end();
}

function syntaxErrors(errors: readonly YAMLError[], text: string, at: At): readonly Finding[] {
  const bare = errors.slice(0, MAX_EXAMINED).flatMap(({ pos: [offset] }) => {
    const found = bareVariable(text, offset);
    if (found === undefined) return [];
    return [at(found.offset, `write ${found.text} in quotes: without them { begins a mapping`)];
  });
  // What the parser says beside is about what it has made of them.
  const unique = [...new Map(bare.map((finding) => [finding.path, finding])).values()];
  if (unique.length > 0) return unique.slice(0, MAX_SYNTAX_ERRORS);
  return errors
    .slice(0, MAX_SYNTAX_ERRORS)
    .map(({ pos: [offset], message }) => at(offset, withCure(firstLine(message))));
}

/** Characters of a line in which a mistake is looked for, on either side of where the parser stumbled. */
const NEAR = 1000;

/** A variable without quotes in a flow collection, in the line of the offset: one mistake, which the parser stumbles over again and again. */
function bareVariable(text: string, offset: number): { readonly offset: number; readonly text: string } | undefined {
  const begin = Math.max(text.lastIndexOf('\n', offset - 1) + 1, offset - NEAR);
  const end = text.indexOf('\n', offset);
  const line = text.slice(begin, Math.min(end === -1 ? text.length : end, offset + NEAR));
  const found = /(?:[[{,]|:\s)\s*((?:[^\s"'[\]{},:]|:(?!\s)|[ \t]+(?=\S))*\$\{\w*\}?(?:[^\s"'[\]{},:]|:(?!\s))*)/.exec(
    line,
  );
  if (found?.[1] === undefined) return undefined;
  return { offset: begin + found.index + found[0].length - found[1].length, text: found[1] };
}

/** The mistakes that this file's own syntax invites, with what to write instead. */
function withCure(message: string): string {
  if (message.startsWith('Alias cannot')) return `${message}: write * in quotes, '*'`;
  if (message.startsWith('Plain value cannot start')) return `${message}: write the value in quotes`;
  if (message.startsWith('With stringKeys'))
    return 'a key must be a text: write a value that begins with { or [ in quotes';
  return message;
}

function firstLine(message: string): string {
  return (message.split('\n', 1)[0] ?? '').slice(0, 200);
}
