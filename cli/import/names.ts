/** The most characters of a name. */
const LONGEST_NAME = 64;

/** Returns a name of letters, digits and a few characters that need no quotes in YAML or in a shell. */
export function nameOf(text: string, otherwise: string): string {
  const plain = text
    .normalize('NFKD')
    .replace(/[^A-Za-z0-9_.]+/g, '-')
    .slice(0, LONGEST_NAME)
    .replace(/^[-.]+|[-.]+$/g, '');
  return /[A-Za-z]/.test(plain) ? plain : otherwise;
}

/** Returns a free name, if need be with a number at its end, and adds it to the taken ones. Case does not count. */
export function unique(name: string, taken: Set<string>, joint = '-'): string {
  let free = name;
  for (let n = 2; taken.has(free.toLowerCase()); n++) free = `${name}${joint}${n}`;
  taken.add(free.toLowerCase());
  return free;
}

/** The prefix of the variables that an import names. */
export const PREFIX = 'UPSTREAM_';

/**
 * Returns the name of a variable for a secret. Because of the prefix, a document cannot name a variable with another
 * purpose, whose value would then be sent to the document's server.
 */
export function variableOf(api: string, ...parts: readonly string[]): string {
  const end = `_${parts.join('_')}`;
  // Only the title is cut: the rest tells the secrets of a document apart.
  return PREFIX + wordsOf(api.slice(0, Math.max(0, LONGEST_NAME - end.length)) + end).toUpperCase();
}

/** Returns a text as words of a variable's name, such as `api_key`. In lower case, words are not separated again. */
export function wordsOf(text: string): string {
  const separated = text.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();
  return separated.replace(/[^a-z0-9]+/g, '_').replace(/^_|_$/g, '');
}
