/** Characters of a name. */
const LONGEST_NAME = 64;

/** A name of letters, digits and a few marks that need no quotes, neither in YAML nor in a shell. */
export function nameOf(text: string, otherwise: string): string {
  const plain = text
    .normalize('NFKD')
    .replace(/[^A-Za-z0-9_.]+/g, '-')
    .slice(0, LONGEST_NAME)
    .replace(/^[-.]+|[-.]+$/g, '');
  return /[A-Za-z]/.test(plain) ? plain : otherwise;
}

/** A name that is not taken yet, with a number behind it where it has to; case does not count. From now on it is taken. */
export function unique(name: string, taken: Set<string>): string {
  let free = name;
  for (let n = 2; taken.has(free.toLowerCase()); n++) free = `${name}-${n}`;
  taken.add(free.toLowerCase());
  return free;
}

/** Of the names of variables that an import makes. */
export const PREFIX = 'UPSTREAM_';

/**
 * The name of a variable for something secret. The prefix keeps a document from naming a variable that is there for something else,
 * whose value would then be sent to the document's server.
 */
export function variableOf(...parts: readonly string[]): string {
  const words = parts.map((part) => part.replace(/([a-z0-9])([A-Z])/g, '$1_$2').replace(/[^A-Za-z0-9]+/g, '_'));
  return `${PREFIX}${words
    .join('_')
    .toUpperCase()
    .replace(/^_+|_+$/g, '')
    .replace(/_{2,}/g, '_')
    .slice(0, LONGEST_NAME)}`;
}
