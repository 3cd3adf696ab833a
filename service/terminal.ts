import { escapeUnprintable } from './text.ts';

type Write = (text: string, done: () => void) => unknown;
let writeResult: Write = (text, done) => process.stdout.write(text, done);

/** Writes a command's result to stdout. Resolves once it is written, or the reader is gone. */
export function print(text: string): Promise<void> {
  return new Promise((done) => writeResult(text, () => done()));
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
  if (!(error instanceof Error)) return oneLine(String(error));
  if ('lines' in error && Array.isArray(error.lines)) return [...error.lines];
  return oneLine(error.message || error.name);
}

function oneLine(text: string): string[] {
  return [text.replace(/\s*\n\s*/g, ' ').trim()];
}
