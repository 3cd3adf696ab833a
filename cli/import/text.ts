/** The most characters of a description. */
const LONGEST_DESCRIPTION = 100;

/** Percent-encodes the characters of a path that a config must not have. */
export function encoded(path: string): string {
  return path.toWellFormed().replace(/[\s\\]|[^\x21-\x7e]/gu, (character) => encodeURIComponent(character));
}

/** Escapes a text for a config, so that nothing in it is replaced by the value of a variable. */
export function literal(text: string): string {
  return text.replaceAll('${', () => '$${');
}

/** Returns an escaped text as the document has it, for all but a config. */
export function unescaped(text: string): string {
  return text.replaceAll('$${', () => '${');
}

/** Matches text that looks like a key or token: long words of letters and digits, and words after `Bearer` or `key=`. */
const CREDENTIAL =
  /\b(?:Bearer|Basic)\s+[\w+/=.-]{12,}|(?<![\w-])[\w-]*(?:key|token|secret|password|appid)=[^\s&]+|(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{20,}(?![\w-])/gi;

/** Returns the beginning of a description, on one line, without markup and anything that looks like a credential. */
export function summary(...texts: readonly unknown[]): string | undefined {
  const text = texts.find((each): each is string => typeof each === 'string' && each.trim() !== '');
  const plain = text
    ?.slice(0, 4 * LONGEST_DESCRIPTION)
    .toWellFormed()
    .replace(/<[^<>]*>/g, ' ')
    .replace(CREDENTIAL, '…')
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
    .trim();
  if (!plain) return undefined;
  const characters = [...plain];
  if (characters.length <= LONGEST_DESCRIPTION) return plain.replace(/\.$/, '');
  const beginning = characters.slice(0, LONGEST_DESCRIPTION - 1).join('');
  return `${beginning.trimEnd()}…`;
}
