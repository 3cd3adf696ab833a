import { isAlias, isCollection, isMap, isNode, isScalar, isSeq, type Node, type Scalar, type YAMLMap } from 'yaml';
import { keepsDigits } from '../lib/json/numbers.ts';
import type { Finding } from '../plugins-sdk/define.ts';
import { childPath } from '../plugins-sdk/schema/path.ts';

/** How much a file may hold. */
export interface TreeLimits {
  readonly depth: number;
  /** Aliases count as often as they are used. */
  readonly values: number;
  /** Whether a number that cannot be kept digit by digit is refused; one in hex is the text that stands in the file. */
  readonly isExact: boolean;
}
const MAX_FINDINGS = 100;

const NOT_EXACT = 'a number with more digits than can be kept, write it in quotes';

/** By the list or mapping that holds it, and its index or key: the text of each number. */
const written = new WeakMap<object, Map<string | number, string>>();

/** How a file writes the numbers among the members of one of its lists or mappings. */
export function writtenNumbers(holder: object): ReadonlyMap<string | number, string> {
  return written.get(holder) ?? new Map();
}

/** A mapping with some members replaced; how the file writes its other numbers stays known. */
export function withMembers<T extends object>(mapping: object, members: T): T {
  const copy = { ...mapping, ...members };
  const others = [...writtenNumbers(mapping)].filter(([key]) => !Object.hasOwn(members, key));
  written.set(copy, new Map(others));
  return copy;
}

/** Turns YAML nodes into plain values; stops where aliases would multiply them without bound. */
export class TreeBuilder {
  readonly findings: Finding[] = [];
  /** Where in the text each value stands, by its config path. */
  readonly offsets = new Map<string, number>();
  readonly #at: (offset: number, message: string) => Finding;
  readonly #anchors = new Map<string, Node>();
  readonly #limits: TreeLimits;
  #values = 0;

  constructor(at: (offset: number, message: string) => Finding, limits: TreeLimits) {
    this.#at = at;
    this.#limits = limits;
  }

  build(node: unknown, path = '', depth = 0): unknown {
    const { values, depth: deepest } = this.#limits;
    if (++this.#values > values) return this.#report(node, `more than ${values} values, aliases counted each time`);
    if (isCollection(node) && depth === deepest) return this.#report(node, `nested more than ${deepest} levels deep`);
    const value = this.#value(node, path, depth + 1);
    if (isNode(node) && !isAlias(node) && node.anchor !== undefined) this.#anchors.set(node.anchor, node);
    return value;
  }

  #value(node: unknown, path: string, depth: number): unknown {
    if (isMap(node)) return this.#mapping(node, path, depth);
    if (isScalar(node)) return this.#scalar(node);
    if (!isSeq(node)) return null;
    const list: unknown[] = [];
    for (const [index, item] of node.items.entries())
      list.push(this.#member(list, index, item, { at: item, path: childPath(path, index), depth }));
    return list;
  }

  #mapping(map: YAMLMap, path: string, depth: number): unknown {
    const mapping: Record<string, unknown> = {};
    for (const { key, value } of map.items) {
      const name = isScalar(key) && typeof key.value === 'string' ? key.value : undefined;
      if (name === undefined) this.#report(key ?? map, 'a key must be text');
      // Validators do not see it among an object's own keys.
      else if (name === '__proto__') this.#report(key, 'the key "__proto__" is not allowed');
      else if (Object.hasOwn(mapping, name)) this.#report(key, `duplicate key "${name}"`);
      else mapping[name] = this.#member(mapping, name, value, { at: key, path: childPath(path, name), depth });
    }
    return mapping;
  }

  /** Reads what an alias stands for anew, and keeps the texts of numbers. @param place with the node that shows where it is. */
  #member(
    holder: object,
    key: string | number,
    given: unknown,
    { at, path, depth }: { readonly at: unknown; readonly path: string; readonly depth: number },
  ): unknown {
    this.offsets.set(path, offsetOf(at));
    const node = isAlias(given) ? this.#anchors.get(given.source) : given;
    if (isAlias(given) && node === undefined)
      return this.#report(given, `alias *${given.source} has no anchor before it`);
    const value = this.build(node, path, depth);
    if (isScalar(node) && typeof value === 'number')
      written.set(holder, (written.get(holder) ?? new Map()).set(key, node.source ?? ''));
    return value;
  }

  #scalar(node: Scalar): unknown {
    const { value, source = '' } = node;
    if (typeof value !== 'number' || !this.#limits.isExact) return value;
    if (source.startsWith('0x')) return keepsDigits(String(BigInt(source)), value) ? value : source;
    if (!Number.isFinite(value)) return this.#report(node, 'is not a finite number');
    const digits = source.startsWith('0o') ? String(BigInt(source)) : source;
    return keepsDigits(digits, value) ? value : this.#report(node, NOT_EXACT);
  }

  /** Only the first of each kind is worth a line. @returns what stands for the value. */
  #report(node: unknown, message: string): null {
    const isKnown = this.findings.some((finding) => finding.message === message);
    if (!isKnown && this.findings.length < MAX_FINDINGS) this.findings.push(this.#at(offsetOf(node), message));
    return null;
  }
}

function offsetOf(node: unknown): number {
  return (isNode(node) ? node.range?.[0] : undefined) ?? 0;
}
