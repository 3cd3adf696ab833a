import { Composer, type CST, isMap, Lexer, LineCounter, Parser, type YAMLError } from 'yaml';
import { errorAt, type Finding } from '../plugins-sdk/define.ts';
import { isRecord, lineage } from '../plugins-sdk/schema/path.ts';
import { decode, readBounded } from './files.ts';
import { ConfigErrors } from './findings.ts';
import { TreeBuilder, type TreeLimits } from './tree.ts';

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
  places.set(tree, { offsets: builder.offsets, lines });
  return tree;
}

/** The offsets of values in the text, by config path, for each tree that was read. */
const places = new WeakMap<Tree, { readonly offsets: ReadonlyMap<string, number>; readonly lines: LineCounter }>();

/** Returns offset and line of the value at a config path, or of the nearest value that contains it. */
export function placeIn(tree: Tree, path: string): { readonly offset: number; readonly line?: number | undefined } {
  const { offsets, lines } = places.get(tree) ?? {};
  const offset = [...lineage(path)].map((at) => offsets?.get(at)).find((found) => found !== undefined);
  return offset === undefined ? { offset: 0 } : { offset, line: lines?.linePos(offset).line };
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
} as const;

/** Makes a finding at an offset of the text. */
type At = (offset: number, message: string) => Finding;

const MAX_SYNTAX_ERRORS = 5;
/** Most of the parser's messages that are searched for mistakes with variables and tabs. */
const MAX_EXAMINED = 50;

/** Mistakes after which the parser still reads the rest as it was meant. */
const LOCAL = new Set(['BAD_SCALAR_START', 'BAD_ALIAS', 'TAG_RESOLVE_FAILED', 'BAD_DQ_ESCAPE']);

/** Turns the parser's errors into findings: one for each mistake of the file, with what to write instead. */
function syntaxErrors(errors: readonly YAMLError[], text: string, at: At): readonly Finding[] {
  const examined = errors.slice(0, MAX_EXAMINED);
  const offsets = examined.map(({ pos: [offset] }) => offset);
  // The parser's other messages are consequences of these mistakes.
  const bare = new Map(offsets.flatMap((offset) => bareVariable(text, offset)));
  if (bare.size > 0)
    return [...bare]
      .slice(0, MAX_SYNTAX_ERRORS)
      .map(([offset, variable]) => at(offset, `write ${variable} in quotes: without them { begins a mapping`));
  const [tab] = offsets.flatMap((offset) => tabBefore(text, offset));
  if (tab !== undefined) return [at(tab, 'a tab cannot indent: write spaces, here and in the lines below')];
  const misleading = examined.findIndex(({ code }) => !LOCAL.has(code));
  const told = misleading === -1 ? MAX_SYNTAX_ERRORS : Math.min(misleading + 1, MAX_SYNTAX_ERRORS);
  return examined.slice(0, told).map((error) => at(error.pos[0], withCure(error, text)));
}

/** Characters on either side of a parser's error in which a mistake is looked for. */
const NEAR = 1000;

function lineAround(text: string, offset: number): { readonly begin: number; readonly line: string } {
  const begin = Math.max(text.lastIndexOf('\n', offset - 1) + 1, offset - NEAR);
  const end = text.indexOf('\n', offset);
  return { begin, line: text.slice(begin, Math.min(end === -1 ? text.length : end, offset + NEAR)) };
}

/** Finds an unquoted variable in a flow collection in the line of the offset: for this one mistake the parser has many errors. */
function bareVariable(text: string, offset: number): [offset: number, text: string][] {
  const { begin, line } = lineAround(text, offset);
  const variable = /(?:[[{,]|:\s)\s*((?:[^\s"'[\]{},:]|:(?!\s)|[ \t]+(?=\S))*\$\{\w*\}?(?:[^\s"'[\]{},:]|:(?!\s))*)/;
  const [all = '', bare] = variable.exec(line) ?? [];
  return bare === undefined ? [] : [[begin + line.indexOf(all) + all.length - bare.length, bare]];
}

/** Finds a tab in the indentation of the line. */
function tabBefore(text: string, offset: number): number[] {
  const { begin, line } = lineAround(text, offset);
  const index = (/^[ \t-]*/.exec(line)?.[0] ?? '').indexOf('\t');
  return index === -1 ? [] : [begin + index];
}

/**
 * The texts that replace the parser's messages. A text that begins with a colon is appended instead. The patterns are tried on the
 * message and, in the line below it, the character before the fault and what follows.
 */
const CURES: readonly (readonly [RegExp, string])[] = [
  [/^Alias cannot/, ": write * in quotes, '*'"],
  [/^Plain value cannot start/, ': write the value in quotes'],
  [/^Unresolved tag/, ': a text that begins with ! needs quotes'],
  [/^Invalid escape sequence/, ': write \\\\ for one \\, or the text in single quotes'],
  [/^With stringKeys/, 'a key must be a text: write a value that begins with { or [ in quotes'],
  [/^Missing closing '/, "a text above begins with ' and does not end: write ' behind it, and '' for one inside"],
  [/^Missing closing "/, 'a text above begins with " and does not end: write " behind it, and \\" for one inside'],
  [/^Implicit (?:map )?keys/, 'expected "key: value", with a space after the colon'],
  [/^All mapping items/, 'is not indented as the keys beside it'],
  [/^All sequence items/, 'is not indented as the entries beside it'],
  [/^Sequence item without/, 'lacks the "- " of a list entry, or is not indented as the keys of the entry above'],
  [/ in block collection must .* \]/, 'the list that begins with [ does not end: write ], or indent this line'],
  [/ in block collection must .* \}/, 'the mapping that begins with { does not end: write }, or indent this line'],
  [/^Block scalar values/, 'is not indented more than the key of the text after | or >'],
  [/^Nested mappings.*\n.*:\s/, 'holds ": ", which ends a key: write the value in quotes'],
  [/^Nested mappings/, 'goes on in the next line, which is indented too far: indent it as the key of this line'],
  [/at node end\n'/, "the text ended at the ' before this: inside single quotes write '' for one"],
  [/at node end\n"/, 'the text ended at the " before this: inside double quotes write \\" for one'],
  [/at node end\n/, 'does not belong to the value before it: write the whole value in quotes'],
];

function withCure({ message, pos: [offset] }: YAMLError, text: string): string {
  const said = (message.split('\n', 1)[0] ?? '').slice(0, 200);
  const place = `${said}\n${text.slice(Math.max(0, offset - 1), offset + NEAR)}\n`;
  const [, cure = said] = CURES.find(([pattern]) => pattern.test(place)) ?? [];
  return cure.startsWith(':') ? said + cure : cure;
}
