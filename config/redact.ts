import { printable } from './path.ts';

const LONGEST = 300;
/** Shorter values hide nothing and would riddle the text. */
const SHORTEST_SECRET = 3;

/** Makes a foreign error's text fit to be shown: one line, and none of the values. */
export type Redact = (error: unknown) => string;

export function redactor(values: Iterable<string>): Redact {
  const secrets = [...values].filter(({ length }) => length >= SHORTEST_SECRET).sort((a, b) => b.length - a.length);
  const forms = secrets.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)]);
  return (error) => {
    const text = forms.reduce((rest, secret) => rest.replaceAll(secret, '***'), textOf(error));
    const line = printable(text.replace(/\s*[\r\n]\s*/g, ' ').trim());
    return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
  };
}

function textOf(error: unknown): string {
  try {
    return error instanceof Error ? error.message || error.name : String(error);
  } catch {
    return 'an error that cannot be shown';
  }
}
