import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type Scalar,
  type YAMLMap,
} from 'yaml';
import type { Finding } from '../plugins-sdk/define.ts';
import { readBounded } from './files.ts';
import { ConfigErrors, errorAt } from './findings.ts';
import { keepsDigits } from './numbers.ts';
import { isRecord } from './path.ts';

/** Aliases count as often as they are used. */
const MAX_VALUES = 100_000;
const MAX_DEPTH = 64;
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
  const document = parse(text, file, lines);
  refuse(
    [...document.errors, ...document.warnings].slice(0, MAX_SYNTAX_ERRORS).map((problem) => {
      return at(
        problem.pos[0],
        problem.code === 'MULTIPLE_DOCS' ? 'expected one YAML document' : firstLine(problem.message),
      );
    }),
  );
  if (document.contents === null) throw new ConfigErrors([errorAt(file, 'is empty')]);
  if (!isMap(document.contents))
    throw new ConfigErrors([errorAt(file, 'expected a mapping (key: value) at the top level')]);
  const builder = new Builder(at);
  const tree = builder.build(document.contents, 0);
  refuse(builder.findings);
  return isRecord(tree) ? tree : {};
}

function refuse(findings: readonly Finding[]): void {
  if (findings.length > 0) throw new ConfigErrors(findings);
}

function parse(text: string, file: string, lineCounter: LineCounter): Document.Parsed {
  try {
    return parseDocument(text, {
      version: '1.2',
      schema: 'core',
      merge: false,
      resolveKnownTags: false,
      stringKeys: true,
      // Checked by the builder: the library compares every key with every other.
      uniqueKeys: false,
      prettyErrors: false,
      logLevel: 'silent',
      lineCounter,
    });
  } catch (error) {
    const tooDeep = error instanceof RangeError;
    throw new ConfigErrors([errorAt(file, tooDeep ? 'is nested too deeply' : 'is not valid YAML')]);
  }
}

function firstLine(message: string): string {
  return (message.split('\n', 1)[0] ?? '').slice(0, 200);
}

interface Anchored {
  readonly value: unknown;
  /** Number of values it consists of. */
  readonly size: number;
}

/** Turns YAML nodes into plain values; stops where aliases would multiply them without bound. */
class Builder {
  readonly findings: Finding[] = [];
  readonly #at: (offset: number, message: string) => Finding;
  readonly #anchors = new Map<string, Anchored>();
  #values = 0;

  constructor(at: (offset: number, message: string) => Finding) {
    this.#at = at;
  }

  build(node: unknown, depth: number): unknown {
    const before = this.#values++;
    if (this.#exceeds(node, depth)) return null;
    const value = this.#value(node, depth);
    if ((isMap(node) || isSeq(node) || isScalar(node)) && node.anchor !== undefined) {
      this.#anchors.set(node.anchor, { value, size: this.#values - before });
    }
    return value;
  }

  #exceeds(node: unknown, depth: number): boolean {
    // Aliases carry depth that is not seen here; the number of values bounds it.
    if (depth > MAX_DEPTH) this.#report(node, `nested more than ${MAX_DEPTH} levels deep`);
    if (this.#values > MAX_VALUES) this.#report(node, `more than ${MAX_VALUES} values, aliases counted each time`);
    return depth > MAX_DEPTH || this.#values > MAX_VALUES;
  }

  #value(node: unknown, depth: number): unknown {
    if (isMap(node)) return this.#mapping(node, depth);
    if (isSeq(node)) return node.items.map((item) => this.build(item, depth + 1));
    if (isScalar(node)) return this.#scalar(node);
    if (!isAlias(node)) return null;
    const anchored = this.#anchors.get(node.source);
    if (anchored === undefined) this.#report(node, `alias *${node.source} has no anchor before it`);
    this.#values += anchored?.size ?? 0;
    return anchored?.value ?? null;
  }

  #mapping(map: YAMLMap, depth: number): unknown {
    const entries = new Map<string, unknown>();
    for (const { key, value } of map.items) {
      const name = isScalar(key) && typeof key.value === 'string' ? key.value : undefined;
      if (name === undefined) this.#report(key ?? map, 'a key must be text');
      // Validators do not see it among an object's own keys.
      else if (name === '__proto__') this.#report(key, 'the key "__proto__" is not allowed');
      else if (entries.has(name)) this.#report(key, `duplicate key "${name}"`);
      else entries.set(name, this.build(value, depth + 1));
    }
    return Object.fromEntries(entries);
  }

  #scalar(node: Scalar): unknown {
    const { value, source } = node;
    if (typeof value !== 'number') return value;
    if (!Number.isFinite(value)) this.#report(node, 'is not a finite number');
    else if (!isExact(source ?? '', value)) {
      this.#report(node, 'a number with more digits than can be kept, write it in quotes');
    }
    return value;
  }

  /** Only the first of each kind of excess is worth a line. */
  #report(node: unknown, message: string): void {
    if (this.findings.some((finding) => finding.message === message)) return;
    const range = isScalar(node) || isMap(node) || isSeq(node) || isAlias(node) ? node.range : undefined;
    this.findings.push(this.#at(range?.[0] ?? 0, message));
  }
}

function isExact(source: string, value: number): boolean {
  if (/^0[xo]/.test(source)) return BigInt(source) === BigInt(value);
  return keepsDigits(source, value);
}
