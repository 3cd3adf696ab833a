import { JSONPathClass } from 'jsonpath-plus';
import type { Location } from './exact-number.ts';
import { scriptFault } from './filters.ts';

/** The text is no JSONPath, or one that its author may not use. The text shows nothing of a requester's path. */
export class PathError extends Error {
  override readonly name: string = 'PathError';
}

/** Evaluating the path on this document would take too long; neither by itself need be at fault. */
export class BudgetError extends PathError {
  override readonly name = 'BudgetError';
}

/**
 * The steps that path evaluations may still take together. One step looks at one value; {@link fullBudget} keeps an
 * evaluation below about 40 ms. Pass one object through all evaluations of a request, so that a long list of paths costs
 * no more than one path.
 */
export interface StepBudget {
  steps: number;
}

/** A value found in a document. */
export interface Match {
  readonly value: unknown;
  /** Where the value is; undefined when it is no value of the document (the name that a final `~` selects). */
  readonly location: Location | undefined;
}

/** A JSONPath ready to run. */
export interface CompiledPath {
  readonly text: string;
  /** Whether it can match one value at most, whatever the document. */
  readonly definite: boolean;
  /**
   * The first match in the order of the path's selectors and the document, or undefined.
   *
   * @param budget what remains for this request; one's own full budget when absent.
   * @throws BudgetError when the budget is used up or the document is nested more than 512 levels deep.
   * @throws PathError when a filter of an operator's path fails in a way that is not "no match".
   */
  first(document: unknown, budget?: StepBudget): Match | undefined;
}

type Selector =
  | { readonly kind: 'name'; readonly name: string; readonly index: number }
  | { readonly kind: 'wildcard' }
  | { readonly kind: 'slice'; readonly start?: number; readonly end?: number; readonly step: number };

interface Segment {
  /** Whether the selectors apply to all values below, too (`..`). */
  readonly descends: boolean;
  readonly selectors: readonly Selector[];
}

type Container = Record<string, unknown> | readonly unknown[];

const FULL_BUDGET = 400_000;
/** Prices of what takes longer than looking at one value. */
const SLICE_STEPS = 6;
const MEMBER_STEPS = 3;
/** Members from which listing the names takes long. */
const WIDE = 256;
const LIBRARY_STEPS = 40;
const FAILED_SCRIPT_STEPS = 400;
const MAX_DEPTH = 512;
const MAX_REQUESTER_PATH = 512;

const DOT_NAME = /[^.[\]()'"`~^?*,;]+/y;
const BARE_NAME = /[^[\]()'"`~^?*,;:]+/y;
const QUOTED = /'((?:[^'\\]|\\['"\\])*)'|"((?:[^"\\]|\\['"\\])*)"/y;
const SLICE = /(-?\d+)?:(-?\d+)?(?::(-?\d+)?)?/y;
const SPACES = /[ \t\r\n]*/y;
const ARRAY_INDEX = /^(?:0|[1-9]\d{0,9})$/;
/** Filters and scripts, type selectors, parents, names, literal escapes: what only the library evaluates. */
const EXTENSION = /[(^~`]/;
const QUOTED_TEXT = /'(?:\\.|[^'\\])*'?|"(?:\\.|[^"\\])*"?/gs;

/** A fresh {@link StepBudget} for one request. */
export function fullBudget(): StepBudget {
  return { steps: FULL_BUDGET };
}

/**
 * Parses a JSONPath: `$` or a first name, then `.name`, `['name']`, `[0]`, `[start:end:step]`, `*`, lists of these in
 * brackets, and `..` before any of them. As in jsonpath-plus `[-1]` is a name, never the last element (`[-1:]`); otherwise
 * than there, texts have no members, and arrays none but their elements.
 *
 * The paths of operators may also use what jsonpath-plus adds: filters and scripts (run by its safe evaluator), `^`, `~`,
 * type selectors. Compile those once, at start-up: the library keeps what it has parsed.
 *
 * @throws PathError when the text is no such path, or a requester's is longer than 512 characters.
 */
export function compilePath(text: string, origin: 'operator' | 'requester'): CompiledPath {
  if (origin === 'requester' && text.length > MAX_REQUESTER_PATH) {
    throw new PathError(`the path is longer than ${MAX_REQUESTER_PATH} characters`);
  }
  if (EXTENSION.test(text.replace(QUOTED_TEXT, ''))) {
    if (origin === 'operator') return compileWithLibrary(text);
    throw new PathError('filters, scripts, type selectors, "^", "~" and "`" are not allowed');
  }
  const segments = parse(text);
  return {
    text,
    definite: segments.every(isDefinite),
    first: (document, budget = fullBudget()) => new Search(segments, budget).first(document),
  };
}

function isDefinite({ descends, selectors: [selector, ...others] }: Segment): boolean {
  if (descends || selector === undefined || others.length > 0) return false;
  return selector.kind === 'name' || (selector.kind === 'slice' && selector.start === -1 && selector.end === undefined);
}

/**
 * Splits a comma-separated list and trims its members; empty members stay. Commas inside brackets, parentheses and quotes
 * belong to their member.
 */
export function splitList(text: string): string[] {
  const members: string[] = [];
  let start = 0;
  let depth = 0;
  let quote = '';
  for (let i = 0; i < text.length; i++) {
    const character = text.charAt(i);
    if (quote !== '') {
      if (character === '\\') i++;
      else if (character === quote) quote = '';
    } else if (character === "'" || character === '"') quote = character;
    else if (character === '[' || character === '(') depth++;
    else if (character === ']' || character === ')') depth = Math.max(0, depth - 1);
    else if (character === ',' && depth === 0) {
      members.push(text.slice(start, i).trim());
      start = i + 1;
    }
  }
  members.push(text.slice(start).trim());
  return members;
}

function parse(text: string): Segment[] {
  const reader = new Reader(text);
  const segments: Segment[] = [];
  if (text.startsWith('$')) {
    reader.at = 1;
    if (!reader.atEnd() && !reader.sees('.') && !reader.sees('[')) throw reader.error('expected "." or "[" behind "$"');
  } else {
    segments.push({ descends: false, selectors: [named(reader.dotName('expected "$" or a name'))] });
  }
  while (!reader.atEnd()) segments.push(segment(reader));
  return segments;
}

function segment(reader: Reader): Segment {
  const descends = reader.take('..');
  if (reader.sees('[') && (descends || !reader.sees('.'))) return { descends, selectors: bracketed(reader) };
  if (!descends && !reader.take('.')) throw reader.error('expected "." or "["');
  if (reader.take('*')) return { descends, selectors: [{ kind: 'wildcard' }] };
  return { descends, selectors: [named(reader.dotName('expected a name or "*"'))] };
}

function bracketed(reader: Reader): Selector[] {
  const selectors: Selector[] = [];
  reader.take('[');
  do {
    reader.match(SPACES);
    selectors.push(selector(reader));
    reader.match(SPACES);
  } while (reader.take(','));
  if (!reader.take(']')) throw reader.error('expected "]"');
  return selectors;
}

function selector(reader: Reader): Selector {
  if (reader.take('*')) return { kind: 'wildcard' };
  const quoted = reader.match(QUOTED);
  if (quoted !== null) return named((quoted[1] ?? quoted[2] ?? '').replace(/\\(.)/gs, '$1'));
  const slice = reader.match(SLICE);
  if (slice !== null) return sliced(slice[1], slice[2], slice[3]);
  const name = reader.match(BARE_NAME)?.[0].trim();
  if (name === undefined || name === '') throw reader.error('expected a name, an index or "*"');
  return named(name);
}

function named(name: string): Selector {
  return { kind: 'name', name, index: ARRAY_INDEX.test(name) ? Number(name) : -1 };
}

function sliced(start: string | undefined, end: string | undefined, step: string | undefined): Selector {
  return {
    kind: 'slice',
    ...(start === undefined ? {} : { start: Number(start) }),
    ...(end === undefined ? {} : { end: Number(end) }),
    step: step === undefined ? 1 : Number(step),
  };
}

/** A position in the text of a path. */
class Reader {
  readonly text: string;
  at = 0;

  constructor(text: string) {
    this.text = text;
  }

  atEnd(): boolean {
    return this.at === this.text.length;
  }

  sees(expected: string): boolean {
    return this.text.startsWith(expected, this.at);
  }

  take(expected: string): boolean {
    const seen = this.sees(expected);
    if (seen) this.at += expected.length;
    return seen;
  }

  match(sticky: RegExp): RegExpExecArray | null {
    sticky.lastIndex = this.at;
    const match = sticky.exec(this.text);
    if (match !== null) this.at = sticky.lastIndex;
    return match;
  }

  dotName(otherwise: string): string {
    const name = this.match(DOT_NAME)?.[0];
    if (name === undefined) throw this.error(otherwise);
    return name;
  }

  error(what: string): PathError {
    return new PathError(`${what} at character ${this.at + 1}`);
  }
}

/** One depth-first evaluation that ends at the first match. */
class Search {
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

  #spend(steps: number): void {
    spend(this.#budget, steps);
  }
}

function spend(budget: StepBudget, steps: number): void {
  budget.steps -= steps;
  if (budget.steps < 0) throw new BudgetError('the path takes too many steps on this document');
}

/** A bound of a slice, counted from the end when negative, held within the array. */
function bounded(bound: number, length: number, low: number, high: number): number {
  return Math.min(Math.max(bound < 0 ? bound + length : bound, low), high);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function compileWithLibrary(text: string): CompiledPath {
  const fault = scriptFault(text);
  if (fault !== undefined) throw new PathError(fault);
  const selectsName = text.endsWith('~');
  return {
    text,
    definite: false,
    first(document, budget = fullBudget()) {
      const value = evaluateWithLibrary(text, document, budget);
      if (value === undefined) return undefined;
      return { value: value.value, location: selectsName ? undefined : locate(value.path, value.value, document) };
    },
  };
}

interface LibraryMatch {
  readonly value: unknown;
  readonly path: unknown;
}

/**
 * Not through the library's callback: that also reports what it finds while it tries nested filters.
 */
function evaluateWithLibrary(text: string, document: unknown, budget: StepBudget): LibraryMatch | undefined {
  let found: unknown;
  try {
    found = new BoundedLibrary(document, budget).evaluate(text, document);
  } catch (error) {
    if (error instanceof BudgetError) throw error;
    if (error instanceof RangeError) throw new BudgetError('the document is nested too deep', { cause: error });
    throw new PathError(error instanceof Error ? error.message : 'the path cannot be evaluated', { cause: error });
  }
  const first: unknown = Array.isArray(found) ? found[0] : undefined;
  return isLibraryMatch(first) ? first : undefined;
}

function isLibraryMatch(value: unknown): value is LibraryMatch {
  return typeof value === 'object' && value !== null && 'value' in value && 'path' in value;
}

/** The library's answer names its path as text; the same path, read by ourselves, must lead to the same value. */
function locate(path: unknown, value: unknown, document: unknown): Location | undefined {
  if (typeof path !== 'string') return undefined;
  try {
    const match = new Search(parse(path), fullBudget()).first(document);
    return match !== undefined && Object.is(match.value, value) ? match.location : undefined;
  } catch (error) {
    if (error instanceof PathError) return undefined;
    throw error;
  }
}

/**
 * The library with a price on each of its steps. A candidate on which a script fails does not match, as in RFC 9535.
 */
class BoundedLibrary extends JSONPathClass {
  readonly #budget: StepBudget;

  constructor(document: unknown, budget: StepBudget) {
    super({ autostart: false, eval: 'safe', resultType: 'all' });
    // What `@root` stands for in a script.
    this.json = document;
    this.#budget = budget;
  }

  override _trace(...step: Parameters<JSONPathClass['_trace']>): ReturnType<JSONPathClass['_trace']> {
    spend(this.#budget, LIBRARY_STEPS);
    // The library cannot go on with a script's result that is neither text nor the index of an element.
    const [[selector], value] = step;
    if (selector !== undefined && typeof selector !== 'string' && !hasOwn(value, selector)) return [];
    return super._trace(...step);
  }

  override _eval(...script: Parameters<JSONPathClass['_eval']>): unknown {
    spend(this.#budget, LIBRARY_STEPS);
    try {
      return super._eval(...script);
    } catch (error) {
      // Only what a script throws has a cause; without one it is the script that cannot be parsed.
      if (!(error instanceof Error) || error.cause === undefined) throw error;
      spend(this.#budget, FAILED_SCRIPT_STEPS);
      return false;
    }
  }
}

function hasOwn(value: unknown, key: PropertyKey): boolean {
  return value !== null && value !== undefined && Object.hasOwn(value, key);
}
