import { QUOTED_TEXT } from './brackets.ts';
import { PathError, type StepBudget } from './budget.ts';
import { BY_NAME } from './filters.ts';
import { follow, type Match, type SearchOptions, search, tokensOf } from './library.ts';
import { type PathValues, Placeholders } from './placeholders.ts';
import { named, parse, type Segment, type Selector } from './syntax.ts';

export { splitList } from './brackets.ts';
export { BudgetError, PathError, type StepBudget } from './budget.ts';
export { follow, type Location, type Match } from './library.ts';

/** A compiled JSONPath. */
export interface CompiledPath {
  /** The text as configured. */
  readonly text: string;
  /** Whether it can match at most one value in any document. */
  readonly definite: boolean;
  /** Whether it can match at most one value in a document that lists each name once. */
  readonly onceByName: boolean;
  /** The path's names that look like the index of an element. */
  readonly misread: readonly string[];
  /** Whether it holds braces that are not placeholders of parameters. */
  readonly hasBraces: boolean;
  /**
   * Returns the first match in the order of the path's selectors and the document, or undefined.
   *
   * @param budget the steps left for this request; a full budget of its own by default.
   * @param values the parameters' values for its placeholders.
   * @throws BudgetError when the budget is used up or the document is nested more than 512 levels deep.
   * @throws PathError when a filter of an operator's path fails in a way that is not "no match".
   */
  first(document: unknown, budget?: StepBudget, values?: PathValues): Match | undefined;
  /** Returns all matches, in the order of {@link first}. */
  all(document: unknown, budget?: StepBudget, values?: PathValues): readonly Match[];
}

const FULL_BUDGET = 400_000;

/** A fresh {@link StepBudget} for one request. */
export function fullBudget(): StepBudget {
  return { steps: FULL_BUDGET };
}

const MAX_REQUESTER_PATH = 512;
/** Matches syntax that only operators may use. */
const SCRIPT = /[()?^~`]/;
/** Matches a slice of the last element alone. */
const LAST = /^-1:(?::1?)?$/;
/** Matches a name that looks like the index of an element. */
const ODD_INDEX = /^(?:[-+]\d+|0\d+)$/;

/**
 * Compiles a JSONPath: `$` or a first name, then `.name`, `['name']`, `[0]`, `[start:end:step]`, `*`, lists of these in
 * brackets, and `..` before any of them. As in jsonpath-plus, `[-1]` is a name, never the last element (`[-1:]`). Unlike
 * there, texts have no members, and arrays only their elements.
 *
 * Operators' paths may also hold filters `[?(…)]` and scripts `[(…)]`, which the library's safe evaluator runs. Compile
 * those only once, at start-up, because the library never forgets a parsed script.
 *
 * @param placeholders the placeholders behind the marks in the text.
 * @throws PathError for any other text, and for a requester's path of more than 512 characters.
 */
export function compilePath(
  text: string,
  origin: 'operator' | 'requester',
  placeholders = new Placeholders(),
): CompiledPath {
  if (origin === 'requester' && text.length > MAX_REQUESTER_PATH)
    throw new PathError(`the path is longer than ${MAX_REQUESTER_PATH} characters`);
  if (origin === 'requester' && SCRIPT.test(text.replace(QUOTED_TEXT, '')))
    throw new PathError('filters, scripts, type selectors, "^", "~" and "`" are not allowed');
  const segments = parse(text, placeholders);
  const soles = segments.map(soleOf);
  const fixed = placeholders.isEmpty ? finder(segments) : undefined;
  const find = (all: boolean, document: unknown, budget = fullBudget(), values: PathValues = {}) => {
    const matches = fixed ?? finder(filled(segments, placeholders, values));
    return matches(document, { budget, all, variables: fixed ? {} : placeholders.variables(values) });
  };
  return {
    text: placeholders.source(text),
    definite: soles.every(isOne),
    onceByName: soles.every((sole) => isOne(sole) || (sole !== undefined && BY_NAME.test(sole.token))),
    misread: segments.flatMap(({ selectors }) => selectors).flatMap(misreadIn),
    hasBraces: /[{}]/.test(text),
    first: (...given) => find(false, ...given)[0],
    all: (...given) => find(true, ...given),
  };
}

/** Returns a function that finds matches. A path of names alone needs no library. */
function finder(segments: readonly Segment[]): (document: unknown, options: SearchOptions) => readonly Match[] {
  const names = segments.flatMap((segment) => soleOf(segment)?.name ?? []);
  const tokens = tokensOf(segments);
  if (names.length < segments.length) return (document, options) => search(tokens, document, options);
  return (document) => {
    const match = follow(document, names);
    return match === undefined ? [] : [match];
  };
}

function filled(segments: readonly Segment[], placeholders: Placeholders, values: PathValues): readonly Segment[] {
  return segments.map(({ descends, selectors }) => {
    const fill = (one: Selector) => (one.name === undefined ? one : named(placeholders.fill(one.name, values)));
    return { descends, selectors: selectors.map(fill) };
  });
}

/** Returns the selector of a segment that has only one and does not descend. */
function soleOf({ descends, selectors: [selector, ...others] }: Segment): Selector | undefined {
  return descends || others.length > 0 ? undefined : selector;
}

function isOne(sole: Selector | undefined): boolean {
  return sole !== undefined && (sole.name !== undefined || LAST.test(sole.token));
}

function misreadIn({ name = '', isBare = false }: Selector): string[] {
  return isBare && ODD_INDEX.test(name) ? [name] : [];
}
