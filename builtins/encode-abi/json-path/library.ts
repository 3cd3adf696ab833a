import { JSONPathClass } from 'jsonpath-plus';
import { isRecord } from '../../../lib/json/value.ts';
import { BudgetError, PathError, type StepBudget, tooManySteps } from './budget.ts';
import { follow, type Match } from './follow.ts';
import type { Token } from './syntax.ts';

/** Prices of what takes longer than looking at one value. */
const TRACE_STEPS = 10;
const SCRIPT_STEPS = 40;
const FAILED_SCRIPT_STEPS = 400;
const MEMBER_STEPS = 3;

/** A path as jsonpath-plus takes it. */
export interface LibraryPath {
  readonly tokens: readonly Token[];
  /** Whether all that it finds must be known: what the library comes to within a filter, or below a `^`, is no match. */
  readonly isWhole: boolean;
}

/**
 * The first match in the order of the path's selectors and the document.
 * @throws BudgetError, PathError when a script fails in a way that is not "no match".
 */
export function search(path: LibraryPath, document: unknown, budget: StepBudget): Match | undefined {
  try {
    return new BoundedLibrary(path, document, budget).first();
  } catch (error) {
    if (error instanceof Ended) return error.match;
    if (error instanceof BudgetError) throw error;
    if (error instanceof RangeError) throw new BudgetError('the document is nested too deep', { cause: error });
    throw new PathError(error instanceof Error ? error.message : 'the path cannot be evaluated', { cause: error });
  }
}

/** Ends a search at its first match. */
class Ended extends Error {
  readonly match: Match;

  constructor(match: Match) {
    super();
    this.match = match;
  }
}

type Trace = Parameters<JSONPathClass['_trace']>;
type Found = Parameters<JSONPathClass['_handleCallback']>[0];

/** The library with a price on each of its steps. A candidate on which a script fails does not match, as in RFC 9535. */
class BoundedLibrary extends JSONPathClass {
  readonly #path: LibraryPath;
  readonly #budget: StepBudget;

  constructor(path: LibraryPath, document: unknown, budget: StepBudget) {
    super({ autostart: false });
    this.#path = path;
    this.#budget = budget;
    // What `@root` stands for in a script.
    this.json = document;
    this.currEval = 'safe';
    this.currSandbox = {};
  }

  first(): Match | undefined {
    const { tokens, isWhole } = this.#path;
    const found = this._trace([...tokens] as string[], this.json, ['$'], null, null, undefined, undefined);
    const first = [found].flat().find((one) => one?.isParentSelector === undefined);
    return isWhole && first !== undefined ? this.#matchOf(first) : undefined;
  }

  override _trace(...step: Trace): ReturnType<JSONPathClass['_trace']> {
    this.#spend(TRACE_STEPS);
    const [[selector, ...rest], value, ...around] = step;
    if (Array.isArray(selector)) return selector.flatMap((one) => this._trace([one, ...rest], value, ...around));
    // The library cannot go on with a script's result that is neither text nor the index of an element.
    if (selector !== undefined && typeof selector !== 'string' && !hasOwn(value, selector)) return [];
    return super._trace(...step);
  }

  override _walk(value: unknown, visit: (name: string | number) => void): void {
    if (Array.isArray(value)) this.#spend(value.length);
    else if (isRecord(value)) this.#spend(Object.keys(value).length * MEMBER_STEPS);
    super._walk(value, visit);
  }

  override _handleCallback(found: Found): void {
    if (this.#path.isWhole) return;
    const match = this.#matchOf(found);
    // Otherwise it is the length of a list, or a character.
    if (match.location !== undefined) throw new Ended(match);
  }

  override _eval(...script: Parameters<JSONPathClass['_eval']>): unknown {
    this.#spend(SCRIPT_STEPS);
    try {
      return super._eval(...script);
    } catch (error) {
      // Only what a script throws has a cause; without one it is the script that cannot be parsed.
      if (!(error instanceof Error) || error.cause === undefined) throw error;
      this.#spend(FAILED_SCRIPT_STEPS);
      return false;
    }
  }

  #matchOf({ value, path }: Found): Match {
    const there = Array.isArray(path) ? follow(this.json, path.slice(1)) : undefined;
    return { value, location: Object.is(there?.value, value) ? there?.location : undefined };
  }

  #spend(steps: number): void {
    this.#budget.steps -= steps;
    if (this.#budget.steps < 0) throw tooManySteps();
  }
}

function hasOwn(value: unknown, key: PropertyKey): boolean {
  return value !== null && value !== undefined && Object.hasOwn(value, key);
}
