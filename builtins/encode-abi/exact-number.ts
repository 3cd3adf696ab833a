import { withoutRoundedNumbers } from '../../lib/json/numbers.ts';
import { follow, type Match } from '../shared/json-path/index.ts';

/** Matches every number that a double may round, and some others: it has 16 digits, or an exponent. */
const MAY_BE_INEXACT = /\d[\d.]{15}|\d[eE]/;

/**
 * Returns the source text of each matched number that `JSON.parse` rounds to a double; undefined for any other match.
 *
 * @param json the text that the matches were found in
 */
export function exactDigits(matches: readonly Match[], json: string): readonly (string | undefined)[] {
  if (!matches.some(({ value }) => typeof value === 'number') || !MAY_BE_INEXACT.test(json)) return [];
  // Read once for all paths: a client may choose hundreds of them.
  const quoted: unknown = JSON.parse(withoutRoundedNumbers(json, JSON.stringify));
  return matches.map(({ value, location }) => {
    const found = typeof value === 'number' ? follow(quoted, location)?.value : undefined;
    return typeof found === 'string' ? found : undefined;
  });
}
