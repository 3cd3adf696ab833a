import { clipped } from '../lib/text/clipped.ts';
import { printable } from '../plugins-sdk/schema/path.ts';

const LONGEST_LINE = 300;
/** Shorter values hide nothing and would riddle the text. */
const SHORTEST_SECRET = 3;

/** Makes a foreign error's text fit to be shown: one line, and none of the values. */
export type Redact = (error: unknown) => string;

/** Shorter values in the middle of our own texts are no secrets. */
const SHORTEST_IN_FINDING = 8;

/** Hides the values of variables in a text, such as a stack, but for those that are too short to be secrets. */
export function hiding(values: Iterable<string>, shortest = SHORTEST_IN_FINDING): (text: string) => string {
  const secrets = [...values].filter(({ length }) => length >= shortest).sort((a, b) => b.length - a.length);
  const formsOf = (secret: string) =>
    new Set([secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]);
  const forms = secrets.flatMap((secret) => [...formsOf(secret)]);
  return (text) => forms.reduce((rest, secret) => rest.replaceAll(secret, '***'), text);
}

export function redactor(values: Iterable<string>): Redact {
  const hide = hiding(values, SHORTEST_SECRET);
  return (error) => {
    const text = hide(errorText(error));
    return clipped(printable(text.replace(/\s*[\r\n]\s*/g, ' ').trim()), LONGEST_LINE);
  };
}

function errorText(error: unknown): string {
  try {
    return error instanceof Error ? error.message || error.name : String(error);
  } catch {
    return 'an error that cannot be shown';
  }
}
