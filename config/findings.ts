import { errorForLog } from '../kernel/refusal.ts';
import { clipped } from '../lib/text.ts';
import type { Finding } from '../plugins-sdk/define.ts';
import { printable } from '../plugins-sdk/schema/path.ts';

/** A finding with its place for people: the endpoint that it is about, and the line of the file. */
export interface LocatedFinding extends Finding {
  readonly where?: string;
}

/** Thrown when a configuration cannot be used. Its message has one line per error: `<path>: <message>`. */
export class ConfigErrors extends Error {
  override readonly name = 'ConfigErrors';
  /** The errors, and the warnings found beside them. */
  readonly findings: LocatedFinding[];
  /** One line per error, with its place. */
  readonly lines: readonly string[];

  constructor(findings: readonly LocatedFinding[]) {
    const errors = findings.filter(({ level }) => level === 'error');
    super(errors.map(findingLine).join('\n'));
    this.findings = [...findings];
    this.lines = errors.map(locatedLine);
  }
}

/** Formats a finding as one line of text. */
export function findingLine({ path, message }: Finding): string {
  return printable(path === '' ? message : `${path}: ${message}`);
}

/** Formats a finding as one line of text, with its place at the end. */
export function locatedLine(finding: LocatedFinding): string {
  return finding.where === undefined ? findingLine(finding) : `${findingLine(finding)} (${printable(finding.where)})`;
}

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
