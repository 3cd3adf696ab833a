import { isMap, LineCounter, parseDocument } from 'yaml';
import type { Finding } from '../plugins-sdk/define.ts';
import { isRecord, lineage } from '../plugins-sdk/schema/path.ts';
import { decode, readBounded } from './files.ts';
import { ConfigErrors, errorAt } from './findings.ts';
import { TreeBuilder, type TreeLimits } from './tree.ts';
import { syntaxErrors } from './yaml-faults.ts';

const LIMITS: TreeLimits = { depth: 64, values: 100_000, isExact: true };

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
  const { contents, errors, warnings } = parseDocument(text, { ...options, lineCounter: lines });
  refuse(syntaxErrors([...errors, ...warnings], text, at));
  if (contents === null) throw new ConfigErrors([errorAt(file, 'is empty')]);
  const builder = new TreeBuilder(at, limits);
  const tree = isMap(contents) ? builder.build(contents) : undefined;
  if (!isRecord(tree)) throw new ConfigErrors([errorAt(file, 'expected a mapping (key: value) at the top level')]);
  refuse(builder.findings);
  places.set(tree, (path) => {
    const offset = builder.offsets.get(path);
    return offset === undefined ? undefined : lines.linePos(offset).line;
  });
  return tree;
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
