import { JSONPathClass } from 'jsonpath-plus';
import type { Location } from '../exact-number.ts';
import { scriptFault } from '../filters.ts';
import { BudgetError, fullBudget, PathError, type StepBudget, tooManySteps } from './budget.ts';
import { type Match, Search } from './search.ts';
import { parse } from './syntax.ts';

/** Prices of what takes longer than looking at one value. */
const LIBRARY_STEPS = 40;
const FAILED_SCRIPT_STEPS = 400;

/**
 * The first match of a path that only jsonpath-plus can evaluate.
 * @throws PathError when the path can never match.
 */
export function librarySearch(text: string): (document: unknown, budget: StepBudget) => Match | undefined {
  const fault = scriptFault(text);
  if (fault !== undefined) throw new PathError(fault);
  const selectsName = text.endsWith('~');
  return (document, budget) => {
    const match = evaluate(text, document, budget);
    if (match === undefined) return undefined;
    const { value, path } = match;
    return { value, location: selectsName ? undefined : locate(path, value, document) };
  };
}

interface LibraryMatch {
  readonly value: unknown;
  readonly path: unknown;
}

/** Not through the library's callback: that also reports what it finds while it tries nested filters. */
function evaluate(text: string, document: unknown, budget: StepBudget): LibraryMatch | undefined {
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

/** The library with a price on each of its steps. A candidate on which a script fails does not match, as in RFC 9535. */
class BoundedLibrary extends JSONPathClass {
  readonly #budget: StepBudget;

  constructor(document: unknown, budget: StepBudget) {
    super({ autostart: false, eval: 'safe', resultType: 'all' });
    // What `@root` stands for in a script.
    this.json = document;
    this.#budget = budget;
  }

  override _trace(...step: Parameters<JSONPathClass['_trace']>): ReturnType<JSONPathClass['_trace']> {
    this.#spend(LIBRARY_STEPS);
    // The library cannot go on with a script's result that is neither text nor the index of an element.
    const [[selector], value] = step;
    if (selector !== undefined && typeof selector !== 'string' && !hasOwn(value, selector)) return [];
    return super._trace(...step);
  }

  override _eval(...script: Parameters<JSONPathClass['_eval']>): unknown {
    this.#spend(LIBRARY_STEPS);
    try {
      return super._eval(...script);
    } catch (error) {
      // Only what a script throws has a cause; without one it is the script that cannot be parsed.
      if (!(error instanceof Error) || error.cause === undefined) throw error;
      this.#spend(FAILED_SCRIPT_STEPS);
      return false;
    }
  }

  #spend(steps: number): void {
    this.#budget.steps -= steps;
    if (this.#budget.steps < 0) throw tooManySteps();
  }
}

function hasOwn(value: unknown, key: PropertyKey): boolean {
  return value !== null && value !== undefined && Object.hasOwn(value, key);
}
