import { parse } from 'dotenv';
import { type Finding, warningAt } from '../plugins-sdk/define.ts';
import type { Environment } from '../plugins-sdk/signing/variables.ts';
import { decode, readBounded } from './files.ts';

/**
 * Returns the variables that a configuration may refer to: those of a file, overridden by the real environment.
 *
 * @param isOptional whether the file may be missing.
 * @param warn called for each line that may not say what its writer meant.
 * @throws ConfigErrors naming the file if it cannot be read, or is not UTF-8: a wrongly decoded value would be another one.
 */
export async function loadEnvironment(
  file: string,
  isOptional: boolean,
  real: Environment,
  warn?: (finding: Finding) => void,
): Promise<Environment> {
  const text = decode(await read(file, isOptional), file);
  if (warn !== undefined) for (const finding of doubtfulLines(text, file)) warn(finding);
  return { ...parse(text), ...real };
}

async function read(file: string, optional: boolean): Promise<Buffer> {
  return readBounded(file).catch((error: unknown) => {
    // A directory called `.env` is probably a Python environment.
    if (optional && ['ENOENT', 'EISDIR'].includes(Object(error).code)) return Buffer.alloc(0);
    throw error;
  });
}

/** Matches a variable as dotenv reads it: its name, its value, and a comment. */
const VARIABLE =
  /^\s*(?:export\s+)?([\w.-]+)(?:\s*=\s*?|:\s+?)(?:\s*'(?:\\'|[^'])*'|\s*"(?:\\"|[^"])*"|\s*`(?:\\`|[^`])*`|[^#\r\n]+)?\s*(#.*)?$/gm;

/** Finds values that are cut off at a `#`, and lines that dotenv ignores. The findings show no value: it may be a secret. */
function doubtfulLines(given: string, file: string): Finding[] {
  const text = given.replace(/\r\n?/g, '\n');
  const findings = new Map<number, string>();
  const lineAt = (offset: number) => text.slice(0, offset).split('\n').length;
  const rest = text.replace(VARIABLE, (variable: string, name: string, comment: string | undefined, offset: number) => {
    const hash = variable.length - (comment?.length ?? 0);
    // A `#` after a space is meant to begin a comment.
    if (comment !== undefined && /\S/.test(variable[hash - 1] ?? ''))
      findings.set(
        lineAt(offset + hash),
        `the value of ${name} ends before the #: write it in quotes to keep the rest`,
      );
    return variable.replace(/[^\n]/g, '');
  });
  for (const [index, line] of rest.split('\n').entries())
    if (/^\s*[^\s#]/.test(line)) findings.set(index + 1, 'this line is ignored: write NAME=value');
  return [...findings].sort(([a], [b]) => a - b).map(([line, message]) => warningAt(`${file}:${line}`, message));
}
