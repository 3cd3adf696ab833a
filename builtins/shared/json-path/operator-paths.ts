import { nearest } from '../../../lib/suggest.ts';
import { QUOTED_TEXT, splitList } from './brackets.ts';
import { PathError } from './budget.ts';
import { type CompiledPath, compilePath } from './index.ts';
import { MARKS, Placeholders } from './placeholders.ts';

/**
 * Compiles an operator's list of paths, in which `{name}` is a placeholder for a parameter's value as sent upstream.
 *
 * @param declared the parameters' names.
 * @throws PathError
 */
export function operatorPaths(text: string, declared: readonly string[]): readonly CompiledPath[] {
  const placeholders = new Placeholders();
  const paths = splitList(placeholders.mark(text, declared));
  const mistake = paths.map((path) => mistakeIn(path, declared)).find((found) => found !== undefined);
  if (mistake !== undefined) throw new PathError(mistake);
  return paths.map((path) => compilePath(path, 'operator', placeholders));
}

const INNERMOST_BRACKETS = /\[[^[\]]*\]/g;

/** Matches a second value after an operator, a bracket or a space, as in `$.a + $.b` and `($.a)/2`. */
const SECOND_VALUE = /[^\w.\])#$]\$[.#]/;
/** Matches a number next to an operator. A sign inside a name has no spaces around it, and no path has `*` before a digit. */
const FACTOR =
  /\s(?:[-+*/%^]|\*\*)\s+(?:\(|[-+]?(?:\d[\d_]*(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?%?$)|[\w#]\*\d|^\d+(?:\.\d+)?\s*[-+*/%]\s*\$[.#]/;
/** Matches a name in braces. Braces of a filter's pattern hold numbers, or follow `\p`. */
const PARAMETER = /(?<!\\[pP])\{\s*[A-Za-z_][\w.-]*\s*\}/;
/** Matches a leading parenthesis, and functions that other languages have for several values. */
const FUNCTION =
  /^\(|(?:^|\.)(?:sum|avg|average|mean|median|min|max|abs|round|floor|ceil|trunc|toFixed|length|count)\(/;

const CALCULATES =
  "a path cannot calculate: list the paths, and set combine to mean, median, min or max, or multiply one value by times; a name that holds such signs needs quotes, as in $['a + b']";

/**
 * Returns advice when a path looks like a formula, or has a placeholder of an unknown parameter.
 * @param path the path, with marks for its placeholders.
 * @param declared the parameters' names.
 */
function mistakeIn(path: string, declared: readonly string[]): string | undefined {
  const unquoted = path.replace(QUOTED_TEXT, "''").replace(MARKS, 'x');
  const [found] = PARAMETER.exec(unquoted) ?? [];
  if (found !== undefined) return `holds ${found}, ${unknown(found.slice(1, -1).trim(), declared)}`;
  const bare = withoutBrackets(unquoted);
  return [SECOND_VALUE, FACTOR, FUNCTION].some((formula) => formula.test(bare)) ? CALCULATES : undefined;
}

function unknown(name: string, declared: readonly string[]): string {
  const meant = nearest(name, declared);
  if (meant !== undefined) return `and no parameter is called so: did you mean {${meant}}?`;
  return `and no parameter is called so: declare it, with in: none if it is not sent, or write ['{${name}}'] for a member of that name`;
}

/** Replaces each bracket by a sign that no pattern here matches, because filters may calculate. */
function withoutBrackets(path: string): string {
  const shorter = path.replace(INNERMOST_BRACKETS, '#');
  return shorter === path ? path : withoutBrackets(shorter);
}
