import { codeOf, escapeUnprintable } from './text.ts';

let writeResult = (text: string, done: (error?: Error | null) => void): unknown => process.stdout.write(text, done);

/** Errors of a full or failing disk. With any other, the reader is gone. */
const LOST = /^(?:ENOSPC|EDQUOT|EFBIG|EIO)$/;

/** Writes a command's result to stdout. Resolves once it is written, or the reader is gone. @throws Error for a full disk. */
export async function print(text: string): Promise<void> {
  // On a nearly full disk node drops the rest of a text without an error. The last character is then refused.
  for (const part of [text.slice(0, -1), text.slice(-1)]) {
    const code = codeOf(await new Promise((done) => writeResult(part, done)));
    if (LOST.test(code)) throw new Error(`stdout cannot be written: ${code}`);
  }
}

/** Keeps stdout for the command's result: other output to stdout, such as plugins', goes to stderr. */
export function reserveStdout(): void {
  writeResult = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
}

/** Writes lines to stderr, each escaped and after a label such as `error`. */
export function complain(label: string, lines: readonly string[]): Promise<void> {
  const text = lines.map((line) => `${label}: ${escapeUnprintable(line)}\n`).join('');
  return new Promise((done) => process.stderr.write(text, () => done()));
}

/** Returns one line for each error, without stacks. An error of a config file has a line for each finding. */
export function describeError(error: unknown): string[] {
  if (error instanceof Error && 'lines' in error && Array.isArray(error.lines)) return [...error.lines];
  const text = error instanceof Error ? error.message || error.name : String(error);
  return [text.replace(/\s*\n\s*/g, ' ').trim()];
}
