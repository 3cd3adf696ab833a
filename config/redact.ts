import { errorForLog } from '../kernel/refusal.ts';
import { clipped } from '../lib/text/clipped.ts';
import { printable } from '../plugins-sdk/schema/path.ts';

const LONGEST_LINE = 300;
/** Shorter values are no secrets, and masking them would make the text unreadable. */
const SHORTEST_SECRET = 3;

/** Returns the text of a foreign error in a form that is safe to show: one line, with the values of variables masked. */
export type Redact = (error: unknown) => string;

/** Shortest value that is masked in our own texts, in the middle of which a shorter one is no secret. */
const SHORTEST_IN_FINDING = 8;

/** Returns a function that masks the values of variables in a text, such as a stack. Values too short to be secrets stay. */
export function hiding(values: Iterable<string>, shortest = SHORTEST_IN_FINDING): (text: string) => string {
  const secrets = [...values].filter(({ length }) => length >= shortest).sort((a, b) => b.length - a.length);
  const forms = secrets.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]);
  return (text) => forms.reduce((rest, secret) => rest.replaceAll(secret, '***'), text);
}

/** Returns a {@link Redact} that masks these values. */
export function redactor(values: Iterable<string>): Redact {
  const hide = hiding(values, SHORTEST_SECRET);
  return (error) => {
    const text = hide(errorForLog(error, 'message'));
    return clipped(printable(text.replace(/\s*[\r\n]\s*/g, ' ').trim()), LONGEST_LINE);
  };
}
