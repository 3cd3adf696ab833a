import { isAlias, isCollection, isMap, isNode, isScalar, type Node, type YAMLMap, type YAMLSeq } from 'yaml';
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
  /** The nodes that aliases stand for. */
  readonly #targets = new Map<unknown, Node>();
  readonly #limits: TreeLimits;
  #values = 0;

  constructor(at: (offset: number, message: string) => Finding, limits: TreeLimits) {
    this.#at = at;
    this.#limits = limits;
  }

  /** Builds the value of a whole document, unless it holds too much. */
  build(root: unknown): unknown {
    this.#resolve(root, new Map());
    return this.#values > this.#limits.values ? {} : this.#build(root, '', 0);
  }

  /** Finds what aliases stand for, and counts the values before any is built: aliases may multiply them without bound. */
  #resolve(node: unknown, anchors: Map<string, readonly [target: Node, count: number]>): void {
    const { values } = this.#limits;
    const before = this.#values;
    const [target, count = 1] = isAlias(node) ? (anchors.get(node.source) ?? []) : [];
    if (isAlias(node) && target === undefined) this.#report(node, `alias *${node.source} has no anchor before it`);
    if (target !== undefined) this.#targets.set(node, target);
    // What is too much stays so, however often it is multiplied.
    this.#values = Math.min(this.#values + count, values + 1);
    if (this.#values > values) this.#report(node, `more than ${values} values, aliases counted each time`);
    if (isCollection(node)) for (const [, , value] of membersOf(node)) this.#resolve(value, anchors);
    if (isNode(node) && node.anchor !== undefined) anchors.set(node.anchor, [node, this.#values - before]);
  }

  #build(node: unknown, path: string, depth: number): unknown {
    const { depth: deepest } = this.#limits;
    if (!isCollection(node)) return this.#scalar(node);
    if (depth === deepest) return this.#report(node, `nested more than ${deepest} levels deep`);
    const holder = isMap(node) ? {} : [];
    for (const [at, key, member] of membersOf(node)) {
      // Assigning it would add no own key, so that validators would not see it.
      if (key === '__proto__') this.#report(at, 'the key "__proto__" is not allowed');
      else if (Object.hasOwn(holder, key)) this.#report(at, `duplicate key "${key}"`);
      else {
        const place = childPath(path, key);
        this.offsets.set(place, offsetOf(at));
        Reflect.set(holder, key, this.#member(holder, key, member, place, depth + 1));
      }
    }
    return holder;
  }

  /** Builds a member, an aliased value anew each time, and records the text of a number. */
  #member(holder: object, key: string | number, given: unknown, path: string, depth: number): unknown {
    const node = isAlias(given) ? this.#targets.get(given) : given;
    const value = this.#build(node, path, depth);
    if (isScalar(node) && typeof value === 'number')
      written.set(holder, (written.get(holder) ?? new Map()).set(key, node.source ?? ''));
    return value;
  }

  #scalar(node: unknown): unknown {
    if (!isScalar(node)) return null;
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

/** The members of a list or a mapping, each with the node at its place. The parser has refused keys that are no texts. */
function membersOf(node: YAMLMap | YAMLSeq): (readonly [at: unknown, key: string | number, value: unknown])[] {
  if (isMap(node)) return node.items.map(({ key, value }) => [key, isScalar(key) ? String(key.value) : '', value]);
  return node.items.map((item, index) => [item, index, item]);
}
