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

/** Finds a member of `value` that is unknown, and returns it with the absent known name that it most likely stands for. */
export function misspelt(
  value: object,
  known: readonly string[],
): { readonly name: string; readonly meant: string } | undefined {
  // This runs for every result of a plugin, and a list of the keys would cost half as much again.
  for (const name in value) {
    if (known.includes(name)) continue;
    const absent = known.filter((member) => !(member in value));
    const meant = nearest(name, absent);
    if (meant !== undefined) return { name, meant };
  }
  return undefined;
}

/** Returns `, did you mean "x"?`, or a list of the known names if none is near. */
export function hint(name: string, known: readonly string[], what: string): string {
  const near = nearest(name, known);
  if (near !== undefined) return `, did you mean "${near}"?`;
  return known.length === 0 ? `, there are no ${what} here` : `, ${what}: ${known.join(', ')}`;
}
