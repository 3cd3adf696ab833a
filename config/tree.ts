import { isAlias, isCollection, isMap, isNode, isScalar, isSeq, type Node, type Scalar, type YAMLMap } from 'yaml';
import { keepsDigits } from '../lib/json/numbers.ts';
import type { Finding } from '../plugins-sdk/define.ts';
import { childPath } from '../plugins-sdk/schema/path.ts';

/** How much a file may hold. */
export interface TreeLimits {
  readonly depth: number;
  /** Aliases count as often as they are used. */
  readonly values: number;
  /** Whether a number that cannot be kept digit by digit is refused; one in hex is left to a schema, which may take it as a text. */
  readonly isExact: boolean;
}
const MAX_FINDINGS = 100;

/** What is said of a number that a double would round. */
export const NOT_EXACT = 'a number with more digits than can be kept, write it in quotes';

interface Anchored {
  readonly node: Node;
  readonly value: unknown;
  /** Number of values it consists of. */
  readonly size: number;
}

/** By the list or mapping that holds it, and its index or key: the text of each number. */
const written = new WeakMap<object, ReadonlyMap<string | number, string>>();

/** How a file writes the numbers among the members of one of its lists or mappings. */
export function writtenNumbers(holder: object): ReadonlyMap<string | number, string> {
  return written.get(holder) ?? none;
}

const none = new Map<string, string>();

/** A mapping with some members replaced; how the file writes its other numbers stays known. */
export function withMembers<T extends object>(mapping: object, members: T): T {
  const others = [...writtenNumbers(mapping)].filter(([key]) => !Object.hasOwn(members, key));
  const copy = { ...mapping, ...members };
  if (others.length > 0) written.set(copy, new Map(others));
  return copy;
}

/** The text of a member as the file writes it, where it reads as a number in hex. */
export function bareHexIn(mapping: object, key: string | number): string | undefined {
  const text = writtenNumbers(mapping).get(key);
  return text?.startsWith('0x') === true ? text : undefined;
}

/** Turns YAML nodes into plain values; stops where aliases would multiply them without bound. */
export class TreeBuilder {
  readonly findings: Finding[] = [];
  readonly #at: (offset: number, message: string) => Finding;
  /** Where in the text each value stands, by its config path; what an alias stands for has the place of the alias. */
  readonly offsets = new Map<string, number>();
  readonly #anchors = new Map<string, Anchored>();
  readonly #limits: TreeLimits;
  #values = 0;
  #depth = 0;

  constructor(at: (offset: number, message: string) => Finding, limits: TreeLimits) {
    this.#at = at;
    this.#limits = limits;
  }

  build(node: unknown, path = ''): unknown {
    const before = this.#values++;
    if (this.#values > this.#limits.values) {
      this.#report(node, `more than ${this.#limits.values} values, aliases counted each time`);
      return null;
    }
    if (isCollection(node) && this.#depth === this.#limits.depth) {
      this.#report(node, `nested more than ${this.#limits.depth} levels deep`);
      return null;
    }
    this.#depth++;
    const value = this.#value(node, path);
    this.#depth--;
    if (isNode(node) && !isAlias(node) && node.anchor !== undefined)
      this.#anchors.set(node.anchor, { node, value, size: this.#values - before });
    return value;
  }

  #value(node: unknown, path: string): unknown {
    if (isMap(node)) return this.#mapping(node, path);
    if (isSeq(node)) {
      const list = node.items.map((item, index) => this.#member(childPath(path, index), item, item));
      this.#keepTexts(list, node.items.entries());
      return list;
    }
    if (isScalar(node)) return this.#scalar(node);
    if (!isAlias(node)) return null;
    const anchored = this.#anchors.get(node.source);
    if (anchored === undefined) this.#report(node, `alias *${node.source} has no anchor before it`);
    this.#values += anchored?.size ?? 0;
    return anchored?.value ?? null;
  }

  /** @param at the node that shows where it is. */
  #member(path: string, at: unknown, value: unknown): unknown {
    if (isNode(at)) this.offsets.set(path, at.range?.[0] ?? 0);
    return this.build(value, path);
  }

  /** Keeps the texts of numbers, and of those that aliases stand for. */
  #keepTexts(holder: object, members: Iterable<readonly [string | number, unknown]>): void {
    const texts = new Map<string | number, string>();
    for (const [key, member] of members) {
      const node = isAlias(member) ? this.#anchors.get(member.source)?.node : member;
      if (isScalar(node) && typeof node.value === 'number') texts.set(key, node.source ?? '');
    }
    if (texts.size > 0) written.set(holder, texts);
  }

  #mapping(map: YAMLMap, path: string): unknown {
    const entries = new Map<string, unknown>();
    const nodes = new Map<string, unknown>();
    for (const { key, value } of map.items) {
      const name = isScalar(key) && typeof key.value === 'string' ? key.value : undefined;
      if (name === undefined) this.#report(key ?? map, 'a key must be text');
      // Validators do not see it among an object's own keys.
      else if (name === '__proto__') this.#report(key, 'the key "__proto__" is not allowed');
      else if (entries.has(name)) this.#report(key, `duplicate key "${name}"`);
      else {
        entries.set(name, this.#member(childPath(path, name), key, value));
        nodes.set(name, value);
      }
    }
    const mapping = Object.fromEntries(entries);
    this.#keepTexts(mapping, nodes);
    return mapping;
  }

  #scalar(node: Scalar): unknown {
    const { value, source = '' } = node;
    if (typeof value !== 'number' || source.startsWith('0x')) return value;
    if (!Number.isFinite(value)) this.#report(node, 'is not a finite number');
    else if (this.#limits.isExact && !isExact(source, value)) this.#report(node, NOT_EXACT);
    return value;
  }

  /** Only the first of each kind is worth a line. */
  #report(node: unknown, message: string): void {
    if (this.findings.length >= MAX_FINDINGS || this.findings.some((finding) => finding.message === message)) return;
    this.findings.push(this.#at((isNode(node) ? node.range?.[0] : undefined) ?? 0, message));
  }
}

/** Whether a double keeps the digits of a number as YAML writes it. */
export function isExact(source: string, value: number): boolean {
  return keepsDigits(/^0[xo]/.test(source) ? String(BigInt(source)) : source, value);
}
