/** Matches quoted text, up to the end if its last quote is missing. */
export const QUOTED_TEXT = /'(?:\\.|[^'\\])*'?|"(?:\\.|[^"\\])*"?/gs;
const QUOTED_OR_ANY = new RegExp(`${QUOTED_TEXT.source}|.`, 'gs');

/** Returns whether one pair of parentheses encloses the whole text. */
export function isInParentheses(text: string): boolean {
  return text.startsWith('(') && closing(text, 0) === text.length - 1;
}

/** Returns the index of the bracket or parenthesis that closes the one at `from`; undefined if none does. */
export function closing(text: string, from: number): number | undefined {
  let depth = 0;
  for (const { 0: piece, index } of text.slice(from).matchAll(QUOTED_OR_ANY)) {
    depth += deeper(piece);
    if (depth === 0) return from + index;
  }
  return undefined;
}

/**
 * Splits a comma-separated list and trims its members; empty members stay. Commas inside brackets, parentheses and quotes
 * belong to their member.
 */
export function splitList(text: string): string[] {
  const members: string[] = [];
  let member = '';
  let depth = 0;
  for (const [piece] of text.matchAll(QUOTED_OR_ANY)) {
    depth = Math.max(0, depth + deeper(piece));
    if (piece === ',' && depth === 0) {
      members.push(member.trim());
      member = '';
    } else member += piece;
  }
  return [...members, member.trim()];
}

function deeper(piece: string): number {
  if (piece === '[' || piece === '(') return 1;
  return piece === ']' || piece === ')' ? -1 : 0;
}
