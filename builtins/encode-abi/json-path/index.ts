import { JSONPath } from 'jsonpath-plus';
import { scriptFault } from '../filters.ts';
import { fullBudget, PathError, type StepBudget } from './budget.ts';
import { follow, type Match } from './follow.ts';
import { type LibraryPath, search } from './library.ts';
import { isDefinite, namesOf, parse, tokensOf } from './syntax.ts';

export { BudgetError, fullBudget, PathError, type StepBudget } from './budget.ts';
export { follow, type Location, type Match } from './follow.ts';
export { splitList } from './syntax.ts';

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

const MAX_REQUESTER_PATH = 512;
/** Filters and scripts, type selectors, parents, names, literal escapes: what only the library evaluates. */
const EXTENSION = /[(^~`]/;
const QUOTED_TEXT = /'(?:\\.|[^'\\])*'?|"(?:\\.|[^"\\])*"?/gs;

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
    if (origin === 'requester')
      throw new PathError('filters, scripts, type selectors, "^", "~" and "`" are not allowed');
    const fault = scriptFault(text);
    if (fault !== undefined) throw new PathError(fault);
    return { text, definite: false, first: searchOf({ tokens: JSONPath.toPathArray(text), isWhole: true }) };
  }
  const segments = parse(text);
  const names = namesOf(segments);
  return {
    text,
    definite: isDefinite(segments),
    first: names ? (document) => follow(document, names) : searchOf({ tokens: tokensOf(segments), isWhole: false }),
  };
}

function searchOf(path: LibraryPath): CompiledPath['first'] {
  return (document, budget = fullBudget()) => search(path, document, budget);
}
