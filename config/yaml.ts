import { Composer, type CST, type Document, isMap, Lexer, LineCounter, type ParsedNode, Parser } from 'yaml';
import type { Finding } from '../plugins-sdk/define.ts';
import { isRecord } from '../plugins-sdk/schema/path.ts';
import { readBounded } from './files.ts';
import { ConfigErrors, errorAt } from './findings.ts';
import { TreeBuilder } from './tree.ts';

const MAX_DEPTH = 64;
/** The document and a scalar are on the parser's stack, too. */
const MAX_STACK = MAX_DEPTH + 2;
/** One mistake in YAML often causes many more messages further down. */
const MAX_SYNTAX_ERRORS = 5;

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

function decode(bytes: Buffer, file: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ConfigErrors([errorAt(file, 'is not UTF-8 text')]);
  }
}

/** @throws ConfigErrors naming `file`, line and column. */
export function parseConfig(text: string, file: string): Tree {
  const lines = new LineCounter();
  const at = (offset: number, message: string) => {
    const { line, col } = lines.linePos(offset);
    return errorAt(`${file}:${line}:${col}`, message);
  };
  const document = parse(text, lines, at);
  const problems = [...document.errors, ...document.warnings].slice(0, MAX_SYNTAX_ERRORS);
  refuse(problems.map(({ pos: [offset], message }) => at(offset, withCure(firstLine(message), lineAt(text, offset)))));
  if (document.contents === null) throw new ConfigErrors([errorAt(file, 'is empty')]);
  if (!isMap(document.contents)) {
    throw new ConfigErrors([errorAt(file, 'expected a mapping (key: value) at the top level')]);
  }
  const builder = new TreeBuilder(at);
  const tree = builder.build(document.contents);
  refuse(builder.findings);
  return isRecord(tree) ? tree : {};
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
function parse(text: string, lines: LineCounter, at: At): Document.Parsed<ParsedNode> {
  const documents = new Composer<ParsedNode>(options).compose(boundedTokens(text, lines, at), true, text.length);
  const [document, surplus] = [...documents];
  if (surplus !== undefined) throw new ConfigErrors([at(surplus.range[0], 'expected one YAML document')]);
  // Composing with `forceDoc` gives a document always.
  if (document === undefined) throw new ConfigErrors([at(0, 'is empty')]);
  return document;
}

/** Tokens of the syntax tree. The parser needs no call stack, what comes after it does: depth is bounded here. */
function* boundedTokens(text: string, lines: LineCounter, at: At): Generator<CST.Token, void> {
  lines.addNewLine(0);
  const parser = new Parser(lines.addNewLine);
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    if (parser.stack.length > MAX_STACK) {
      throw new ConfigErrors([at(parser.offset, `nested more than ${MAX_DEPTH} levels deep`)]);
    }
  }
  yield* parser.end();
}

function lineAt(text: string, offset: number): string {
  const end = text.indexOf('\n', offset);
  return text.slice(text.lastIndexOf('\n', offset - 1) + 1, end === -1 ? text.length : end);
}

/** The mistakes that this file's own syntax invites, with what to write instead. */
function withCure(message: string, line: string): string {
  if (message.startsWith('Alias cannot')) return `${message}: write * in quotes, '*'`;
  if (message.startsWith('Plain value cannot start')) return `${message}: write the value in quotes`;
  if (/[[{,:]\s*\$\{/.test(line)) return `${message}: write values with \${…} in quotes`;
  return message;
}

function firstLine(message: string): string {
  return (message.split('\n', 1)[0] ?? '').slice(0, 200);
}
