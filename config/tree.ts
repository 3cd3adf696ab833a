import { isAlias, isCollection, isMap, isNode, isScalar, isSeq } from 'yaml';
import { keepsDigits } from '../lib/json/numbers.ts';
import type { Finding } from '../plugins-sdk/define.ts';
import { childPath } from '../plugins-sdk/schema/path.ts';

/** The limits of a YAML file's content. */
export interface TreeLimits {
  readonly depth: number;
  /** Most values; an aliased value counts each time that it is used. */
  readonly values: number;
  /**
   * Whether a number is refused if a double would lose digits of it. In hex, such a number becomes a text instead. If not, every
   * number becomes a text that JavaScript would write differently, such as 1.10.
   */
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
  written.set(copy, new Map([...writtenNumbers(mapping)].filter(([key]) => !Object.hasOwn(members, key))));
  return copy;
}

/** Builds plain values from YAML nodes. Refuses a document whose aliases multiply values beyond the limit. */
export class TreeBuilder {
  readonly findings: Finding[] = [];
  /** The offset of each value in the text, by its config path. */
  readonly offsets = new Map<string, number>();
  readonly #at: (offset: number, message: string) => Finding;
  /** The nodes that aliases stand for. */
  readonly #targets = new Map<unknown, unknown>();
  readonly #limits: TreeLimits;
  #values = 0;

  constructor(at: (offset: number, message: string) => Finding, limits: TreeLimits) {
    this.#at = at;
    this.#limits = limits;
  }

  /** Builds the value of a document; an empty mapping where it has too many values. */
  build(root: unknown): unknown {
    this.#resolve(root, new Map());
    return this.#values > this.#limits.values ? {} : this.#build(root, '', 0);
  }

  /** Resolves aliases and counts values. None is built before the count is known: aliases multiply values without bound. */
  #resolve(node: unknown, anchors: Map<string, readonly [target: unknown, count: number]>): void {
    const { values } = this.#limits;
    const before = this.#values;
    const [target, count = 1] = isAlias(node) ? (anchors.get(node.source) ?? []) : [];
    if (isAlias(node) && target === undefined) this.#report(node, `alias *${node.source} has no anchor before it`);
    if (target !== undefined) this.#targets.set(node, target);
    // The count stops at one above the limit, so that multiplying keeps it finite.
    this.#values = Math.min(this.#values + count, values + 1);
    if (this.#values > values) this.#report(node, `more than ${values} values, aliases counted each time`);
    const anchor = isNode(node) ? node.anchor : undefined;
    // A value cannot hold itself, and an anchor of the same name inside it is the later one.
    if (anchor !== undefined) anchors.delete(anchor);
    for (const [, , value] of nodesIn(node)) this.#resolve(value, anchors);
    if (anchor !== undefined && !anchors.has(anchor)) anchors.set(anchor, [node, this.#values - before]);
  }

  #build(node: unknown, path: string, depth: number): unknown {
    if (!isCollection(node)) return this.#scalar(node);
    if (depth === this.#limits.depth) return this.#report(node, `nested more than ${depth} levels deep`);
    const holder = isMap(node) ? {} : [];
    for (const [at, key, member] of nodesIn(node)) {
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
    const node = this.#targets.get(given) ?? given;
    const value = this.#build(node, path, depth);
    if (isScalar(node) && typeof value === 'number')
      written.set(holder, (written.get(holder) ?? new Map()).set(key, node.source ?? ''));
    return value;
  }

  #scalar(node: unknown): unknown {
    if (!isScalar(node)) return null;
    const { value, source = '' } = node;
    if (typeof value !== 'number') return value;
    if (!this.#limits.isExact) return String(value) === source ? value : source;
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

/** Returns the members of a list or a mapping, each with the node at its place. The parser has refused keys that are no texts. */
function nodesIn(node: unknown): (readonly [at: unknown, key: string | number, value: unknown])[] {
  if (isMap(node)) return node.items.map(({ key, value }) => [key, isScalar(key) ? String(key.value) : '', value]);
  return isSeq(node) ? node.items.map((item, index) => [item, index, item]) : [];
}
