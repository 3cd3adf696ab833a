import { isRecord } from '../../../lib/json/value.ts';
import type { Location } from '../exact-number.ts';
import { BudgetError, type StepBudget, tooManySteps } from './budget.ts';
import type { Segment, Selector } from './syntax.ts';

/** A value found in a document. */
export interface Match {
  readonly value: unknown;
  /** Where the value is; undefined when it is no value of the document (the name that a final `~` selects). */
  readonly location: Location | undefined;
}

type Container = Record<string, unknown> | readonly unknown[];

/** Prices of what takes longer than looking at one value. */
const SLICE_STEPS = 6;
const MEMBER_STEPS = 3;
/** Members from which listing the names takes long. */
const WIDE = 256;
const MAX_DEPTH = 512;

/** One depth-first evaluation that ends at the first match. */
export class Search {
  readonly #segments: readonly Segment[];
  readonly #budget: StepBudget;
  readonly #location: (string | number)[] = [];
  readonly #names = new Map<object, readonly string[]>();
  #value: unknown;

  constructor(segments: readonly Segment[], budget: StepBudget) {
    this.#segments = segments;
    this.#budget = budget;
  }

  first(document: unknown): Match | undefined {
    return this.#matches(document, 0) ? { value: this.#value, location: this.#location } : undefined;
  }

  /** Whether the segments from the i-th on find something at `node`; if so, `#location` and `#value` tell what. */
  #matches(node: unknown, i: number): boolean {
    const segment = this.#segments[i];
    if (segment === undefined) {
      this.#value = node;
      return true;
    }
    this.#spend(1);
    // JSON scalars have no members, although a JavaScript string has characters and a length.
    if (!isRecord(node) && !Array.isArray(node)) return false;
    if (this.#location.length > MAX_DEPTH) throw new BudgetError('the document is nested too deep');
    for (const selector of segment.selectors) {
      if (this.#selects(selector, node, i + 1)) return true;
    }
    return segment.descends && this.#eachChild(node, i, true);
  }

  #selects(selector: Selector, node: Container, next: number): boolean {
    if (selector.kind === 'wildcard') return this.#eachChild(node, next, false);
    this.#spend(selector.kind === 'slice' ? SLICE_STEPS : 1);
    if (selector.kind === 'slice') return Array.isArray(node) && this.#slices(selector, node, next);
    if (Array.isArray(node)) {
      const { index } = selector;
      return index >= 0 && index < node.length && this.#enters(index, node[index], next);
    }
    if (!isRecord(node) || !Object.hasOwn(node, selector.name)) return false;
    return this.#enters(selector.name, node[selector.name], next);
  }

  #eachChild(node: Container, next: number, containersOnly: boolean): boolean {
    if (Array.isArray(node)) {
      for (let k = 0; k < node.length; k++) {
        this.#spend(1);
        const child: unknown = node[k];
        if (containersOnly && typeof child !== 'object') continue;
        if (this.#enters(k, child, next)) return true;
      }
      return false;
    }
    if (!isRecord(node)) return false;
    const names = this.#namesOf(node);
    this.#spend(names.length * MEMBER_STEPS);
    for (const name of names) {
      const child = node[name];
      if (containersOnly && typeof child !== 'object') continue;
      if (this.#enters(name, child, next)) return true;
    }
    return false;
  }

  /** A wide object is often looked through again, and its names take as long to list as its values to visit. */
  #namesOf(node: object): readonly string[] {
    const known = this.#names.get(node);
    if (known !== undefined) return known;
    const names = Object.keys(node);
    if (names.length > WIDE) this.#names.set(node, names);
    return names;
  }

  #slices(slice: Extract<Selector, { kind: 'slice' }>, array: readonly unknown[], next: number): boolean {
    const { step } = slice;
    const { length } = array;
    if (step === 0) return false;
    const forwards = step > 0;
    const low = forwards ? 0 : -1;
    const high = forwards ? length : length - 1;
    const start = slice.start === undefined ? (forwards ? low : high) : bounded(slice.start, length, low, high);
    const end = slice.end === undefined ? (forwards ? high : low) : bounded(slice.end, length, low, high);
    for (let k = start; forwards ? k < end : k > end; k += step) {
      this.#spend(1);
      if (this.#enters(k, array[k], next)) return true;
    }
    return false;
  }

  #enters(key: string | number, child: unknown, next: number): boolean {
    this.#location.push(key);
    if (this.#matches(child, next)) return true;
    this.#location.pop();
    return false;
  }

  /** Not an imported function: V8 does not inline those, and a search would take twice as long. */
  #spend(steps: number): void {
    this.#budget.steps -= steps;
    if (this.#budget.steps < 0) throw tooManySteps();
  }
}

/** A bound of a slice, counted from the end when negative, held within the array. */
function bounded(bound: number, length: number, low: number, high: number): number {
  return Math.min(Math.max(bound < 0 ? bound + length : bound, low), high);
}
