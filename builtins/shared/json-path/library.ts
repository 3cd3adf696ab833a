import { JSONPathClass } from 'jsonpath-plus';
import { isRecord } from '../../../lib/json/value.ts';
import { BudgetError, PathError, type StepBudget } from './budget.ts';
import type { PathValues } from './placeholders.ts';
import { quotedName, type Segment } from './syntax.ts';

/** The costs, in steps, of operations that take longer than looking at one value. */
const TRACE_STEPS = 10;
const SCRIPT_STEPS = 40;
const FAILED_SCRIPT_STEPS = 400;
const MEMBER_STEPS = 3;
/** The cost of a character of a name, which the library reads for each candidate, and of a parameter: scripts may make it a text. */
const STEPS_PER_CHARACTER = 1 / 8;

/** One selector, or several that are tried in turn. */
type Token = string | readonly string[];

/** Turns a path into jsonpath-plus's form. */
export function tokensOf(segments: readonly Segment[]): readonly Token[] {
  return segments.flatMap(({ descends, selectors }): Token[] => {
    const tokens = selectors.map(({ token }) => token);
    const token = tokens.length === 1 ? tokens : [tokens];
    return descends ? ['..', ...token] : token;
  });
}

/** The options of a search. */
export interface SearchOptions {
  readonly budget: StepBudget;
  /** The variables that scripts may use. */
  readonly variables: PathValues;
  /** Whether to find all matches; otherwise the search ends at the first. */
  readonly all: boolean;
}

/**
 * Returns the matches in the order of the path's selectors and the document.
 *
 * @throws BudgetError when the steps are spent or the document is too deep; PathError when a script cannot be parsed.
 */
export function search(tokens: readonly Token[], document: unknown, options: SearchOptions): readonly Match[] {
  try {
    return new BoundedLibrary(tokens, document, options).matches();
  } catch (error) {
    if (error instanceof Ended) return [error.match];
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

/** The library with a cost for each of its steps. A candidate on which a script fails does not match, as in RFC 9535. */
class BoundedLibrary extends JSONPathClass {
  readonly #tokens: readonly Token[];
  readonly #budget: StepBudget;
  /** False with filters: the library also reports values that it visits inside a filter, and those are no matches. */
  readonly #endsEarly: boolean;
  readonly #scriptSteps: number;

  constructor(tokens: readonly Token[], document: unknown, { budget, variables, all }: SearchOptions) {
    super({ autostart: false });
    this.#tokens = tokens;
    this.#budget = budget;
    this.#endsEarly = !all && !tokens.some((token) => typeof token === 'string' && token.startsWith('?'));
    // The value of `@root` in scripts.
    this.json = document;
    this.currEval = 'safe';
    this.currSandbox = { ...variables };
    this.#scriptSteps = SCRIPT_STEPS + Math.floor(JSON.stringify(variables).length * STEPS_PER_CHARACTER);
  }

  matches(): readonly Match[] {
    const tokens = [...this.#tokens] as string[];
    const found = [this._trace(tokens, this.json, ['$'], null, null, undefined, undefined)].flat();
    return found.flatMap((one) => this.#matchOf(one) ?? []);
  }

  override _trace(...step: Trace): ReturnType<JSONPathClass['_trace']> {
    const [[selector], value, path, parent, parentName] = step;
    const text = typeof selector === 'string' ? selector : '';
    this.#spend(TRACE_STEPS + Math.floor(text.length * STEPS_PER_CHARACTER));
    if (Array.isArray(selector)) return selector.flatMap((one) => this.#traceAs(one, step));
    // The library's eighth argument, set behind `*`, would let a member win that is spelt like the token, quotes included.
    if (!text.startsWith('(')) return super._trace(...(step.slice(0, 7) as Trace));
    // A script's result is a name, never a selector.
    const name = this._eval(text, value, path.at(-1) ?? '$', path.slice(0, -1), parent, parentName);
    const isName = typeof name === 'string' || typeof name === 'number';
    return isName ? this.#traceAs(quotedName(String(name)), step) : [];
  }

  #traceAs(selector: string, [[, ...rest], ...around]: Trace): ReturnType<JSONPathClass['_trace']> {
    return this._trace([selector, ...rest], ...around);
  }

  override _walk(value: unknown, visit: (name: string | number) => void): void {
    if (Array.isArray(value)) this.#spend(value.length);
    else if (isRecord(value)) this.#spend(Object.keys(value).length * MEMBER_STEPS);
    super._walk(value, visit);
  }

  override _handleCallback(found: Found): void {
    const match = this.#endsEarly ? this.#matchOf(found) : undefined;
    if (match !== undefined) throw new Ended(match);
  }

  override _eval(...script: Parameters<JSONPathClass['_eval']>): unknown {
    this.#spend(this.#scriptSteps);
    try {
      return super._eval(...script);
    } catch (error) {
      // An error has a cause if the script threw it; without one the script cannot be parsed.
      if (!(error instanceof Error) || error.cause === undefined) throw error;
      this.#spend(FAILED_SCRIPT_STEPS);
      return false;
    }
  }

  /** Returns the match that the library found; undefined for a list's length or a text's character, which are no members here. */
  #matchOf({ path }: Found): Match | undefined {
    return Array.isArray(path) ? follow(this.json, path.slice(1)) : undefined;
  }

  #spend(steps: number): void {
    this.#budget.steps -= steps;
    if (this.#budget.steps < 0) throw new BudgetError('the path takes too many steps on this document');
  }
}

/** The location of a value in a JSON document: member names and array indices from the root. */
export type Location = readonly (string | number)[];

/** A value found in a document. */
export interface Match {
  readonly value: unknown;
  readonly location: Location;
}

/** Returns the value at a location, if there is one. Texts have no members, and arrays only their elements. */
export function follow(document: unknown, names: Location): Match | undefined {
  const location: (string | number)[] = [];
  let value = document;
  for (const name of names) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    const isList = Array.isArray(value);
    if (isList && name === 'length') return undefined;
    location.push(isList ? Number(name) : String(name));
    value = Reflect.get(value, name);
  }
  return { value, location };
}
