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

/** The first sentence of a description, in one line, without markup and what looks like a credential. */
export function sentence(...texts: readonly unknown[]): string | undefined {
  const text = texts.find((each): each is string => typeof each === 'string' && each.trim() !== '');
  if (text === undefined) return undefined;
  const plain = text
    .slice(0, 4 * LONGEST_DESCRIPTION)
    .toWellFormed()
    .replace(/<[^<>]*>/g, ' ')
    .replace(CREDENTIAL, '…')
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
    .trim();
  const first = firstSentence(plain);
  const short =
    first.length > LONGEST_DESCRIPTION
      ? `${[...first]
          .slice(0, LONGEST_DESCRIPTION - 1)
          .join('')
          .trimEnd()}…`
      : first;
  return short === '' ? undefined : printable(short.replace(/\.$/, ''));
}

/** Characters that a sentence has at least. */
const SHORTEST_SENTENCE = 11;
/** What keeps its full stop: letters such as those of "e.g." and "U.S.", and words such as these. */
const ABBREVIATION =
  /(?:^|[^\p{L}\p{N}])(?:\p{L}\.\s?\p{L}|[ei][eg]|etc|vs|cf|ca|approx|incl|excl|resp|esp|inc|ltd|co|corp|st|mt|dr|mrs?|ms|prof|jr|sr|est|dept|viz|aka|ex|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|bzw|usw|ggf|inkl)\.$/iu;
/** Words that keep it before a number. */
const BEFORE_NUMBER = /(?:^|[^\p{L}\p{N}])(?:nos?|nr|num|max|min|avg|fig|eq|sec|vol|ver|ref|pp?)\.$/iu;

function firstSentence(text: string): string {
  for (const { 0: mark, index } of text.matchAll(/(?<! )[.!?]+["')\]]*(?= |$)/g)) {
    const end = index + mark.length;
    if (end >= SHORTEST_SENTENCE && !isInside(text.slice(0, index + 1), text.slice(end + 1))) return text.slice(0, end);
  }
  return text;
}

/** Whether a full stop ends no sentence. */
function isInside(before: string, after: string): boolean {
  if (!before.endsWith('.') || after === '') return false;
  if (/^[^\p{L}\p{N}]*\p{Ll}/u.test(after) || (BEFORE_NUMBER.test(before) && /^\p{N}/u.test(after))) return true;
  // A list may end with "etc.", and its sentence with it.
  return ABBREVIATION.test(before) && !(/\betc\.$/i.test(before) && /^\p{Lu}/u.test(after));
}
