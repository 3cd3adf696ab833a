import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { eventually } from './wait.ts';

/** A line of an audit record. */
export type AuditLine = Readonly<Record<string, unknown>>;

/** The lines of an audit record without their times; none while there is no file. */
export async function auditLines(path: string): Promise<AuditLine[]> {
  const text = await readFile(path, 'utf8').catch(() => '');
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  return whole
    .split('\n')
    .filter(Boolean)
    .map((json) => {
      const { time, ...line } = JSON.parse(json);
      assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      return line;
    });
}

/** Resolves with the lines once there are so many. */
export async function untilAudited(path: string, count: number): Promise<AuditLine[]> {
  let lines: AuditLine[] = [];
  const look = async () => {
    lines = await auditLines(path);
    return lines.length >= count && lines;
  };
  return eventually(look, () => `${count} lines: ${JSON.stringify(lines)}`);
}
