import { isAlias, isCollection, isMap, isNode, isScalar, isSeq, type Node, type Scalar, type YAMLMap } from 'yaml';
import { keepsDigits } from '../lib/json/numbers.ts';
import type { Finding } from '../plugins-sdk/define.ts';
import { childPath } from '../plugins-sdk/schema/path.ts';

/** The limits of a YAML file's content. */
export interface TreeLimits {
  readonly depth: number;
  /** Most values; an aliased value counts each time that it is used. */
  readonly values: number;
  /** Whether a number is refused if a double would lose digits of it. In hex, such a number becomes a text instead. */
  readonly isExact: boolean;
}
const MAX_FINDINGS = 100;

const NOT_EXACT = 'a number with more digits than can be kept, write it in quotes';

/** The source text of each number, by the list or mapping that holds it, and its index or key there. */
const written = new WeakMap<object, Map<string | number, string>>();

/** Returns how the file writes the numbers in a list or mapping, by their index or key. */
export function writtenNumbers(holder: object): ReadonlyMap<string | number, string> {
  return written.get(holder) ?? new Map();
}

/** Returns a copy of a mapping with some members replaced. The source texts of its other numbers stay known. */
export function withMembers<T extends object>(mapping: object, members: T): T {
  const copy = { ...mapping, ...members };
  const others = [...writtenNumbers(mapping)].filter(([key]) => !Object.hasOwn(members, key));
  written.set(copy, new Map(others));
  return copy;
}

/** Builds plain values from YAML nodes. Stops when aliases would multiply them without bound. */
export class TreeBuilder {
  readonly findings: Finding[] = [];
  /** The offset of each value in the text, by its config path. */
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
      // The parser has refused keys that are no texts.
      const name = isScalar(key) ? String(key.value) : '';
      // Assigning it would add no own key, so that validators would not see it.
      if (name === '__proto__') this.#report(key, 'the key "__proto__" is not allowed');
      else if (Object.hasOwn(mapping, name)) this.#report(key, `duplicate key "${name}"`);
      else mapping[name] = this.#member(mapping, name, value, { at: key, path: childPath(path, name), depth });
    }
    return mapping;
  }

  /** Builds a member, an aliased value anew each time, and records the text of a number. @param at node at the member's place. */
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

  /** Reports a fault, unless the same message was reported before. @returns the value to use instead. */
  #report(node: unknown, message: string): null {
    const isKnown = this.findings.some((finding) => finding.message === message);
    if (!isKnown && this.findings.length < MAX_FINDINGS) this.findings.push(this.#at(offsetOf(node), message));
    return null;
  }
}

function offsetOf(node: unknown): number {
  return (isNode(node) ? node.range?.[0] : undefined) ?? 0;
}
