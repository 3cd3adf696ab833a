import { nearest } from '../../../lib/text/suggest.ts';
import { QUOTED_TEXT } from './brackets.ts';
import { MARKS } from './placeholders.ts';

const INNERMOST_BRACKETS = /\[[^[\]]*\]/g;

/** A second value behind an operator, a bracket or a space, as in `$.a + $.b` and `($.a)/2`. */
const SECOND_VALUE = /[^\w.\])#$]\$[.#]/;
/** A number behind or in front of an operator. In a name a sign has no spaces around it, and no path goes on with `*` and a digit. */
const FACTOR =
  /\s(?:[-+*/%^]|\*\*)\s+(?:\(|[-+]?(?:\d[\d_]*(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?%?$)|[\w#]\*\d|^\d+(?:\.\d+)?\s*[-+*/%]\s*\$[.#]/;
/** A name in braces; those of a pattern in a filter hold numbers, or stand behind `\p`. */
const PARAMETER = /(?<!\\[pP])\{\s*[A-Za-z_][\w.-]*\s*\}/;
/** What begins with a bracket, and what other languages have for several values. */
const FUNCTION =
  /^\(|(?:^|\.)(?:sum|avg|average|mean|median|min|max|abs|round|floor|ceil|trunc|toFixed|length|count)\(/;

const CALCULATES =
  "a path cannot calculate: list the paths, and set combine to mean, median, min or max, or multiply one value by times; a name that holds such signs needs quotes, as in $['a + b']";

/**
 * What an operator may take a path for, with what to write instead.
 * @param path with marks for the parameters that it holds.
 * @param declared names of parameters.
 */
export function mistakeIn(path: string, declared: readonly string[]): string | undefined {
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

/** Filters may calculate, so each bracket becomes a sign that no test here looks for. */
function withoutBrackets(path: string): string {
  const shorter = path.replace(INNERMOST_BRACKETS, '#');
  return shorter === path ? path : withoutBrackets(shorter);
}
