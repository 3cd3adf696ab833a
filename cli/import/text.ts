import { printable } from '../../plugins-sdk/schema/path.ts';

/** Characters of a description. */
const LONGEST_DESCRIPTION = 100;

/** Text that is taken as it is: what looks like a variable would be replaced by the value of one. */
export function literal(text: string): string {
  return text.replaceAll('${', () => '$${');
}

/** A path, or a part of one, with everything percent-encoded that a config must not have as it is. */
export function encoded(path: string): string {
  return path.toWellFormed().replace(/[\s\\]|[^\x21-\x7e]/gu, (character) => encodeURIComponent(character));
}

/** All texts of a value as {@link literal}; keys are never replaced. Numbers that JSON does not have become texts. */
export function literals(value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  if (typeof value === 'string') return literal(value);
  if (Array.isArray(value)) return value.map(literals);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, literals(member)]));
}

/** What looks like a key or a token: letters and digits mixed in a long word, or any word behind `Bearer` or `key=`. */
const CREDENTIAL =
  /\b(?:Bearer|Basic)\s+[\w+/=.-]{12,}|(?<![\w-])[\w-]*(?:key|token|secret|password|appid)=[^\s&]+|(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{20,}(?![\w-])/gi;

/** The beginning of a description, in one line, without markup and what looks like a credential. */
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
  if (characters.length <= LONGEST_DESCRIPTION) return printable(plain.replace(/\.$/, ''));
  return printable(
    `${characters
      .slice(0, LONGEST_DESCRIPTION - 1)
      .join('')
      .trimEnd()}…`,
  );
}
