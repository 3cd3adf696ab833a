import { distance } from 'fastest-levenshtein';

const LONGEST_NAME = 100;

/** Returns the known name that a misspelt one most likely stands for. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length > LONGEST_NAME) return undefined;
  const allowed = Math.max(name.length < 3 ? 1 : 2, Math.floor(name.length / 3));
  // A name that differs in every letter was not misspelt.
  return known
    .map((candidate) => ({ candidate, edits: distance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, edits }) => edits <= allowed && edits < candidate.length)
    .toSorted((a, b) => a.edits - b.edits)[0]?.candidate;
}

/** Returns `, did you mean "x"?`, or a list of the known names if none is near. */
export function hint(name: string, known: readonly string[], what: string): string {
  const near = nearest(name, known);
  if (near !== undefined) return `, did you mean "${near}"?`;
  return known.length === 0 ? `, there are no ${what} here` : `, ${what}: ${known.join(', ')}`;
}
