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
