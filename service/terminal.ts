import { escapeUnprintable } from './text.ts';

type Write = (text: string, done: () => void) => unknown;
let writeResult: Write = (text, done) => process.stdout.write(text, done);

/** Writes a command's result to stdout; resolves once it is out or nobody reads any more. */
export function print(text: string): Promise<void> {
  return new Promise((done) => writeResult(text, () => done()));
}

/** Keeps stdout for the command's result: what plugins print goes to stderr from now on. */
export function reserveStdout(): void {
  writeResult = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
}

/** Writes lines to stderr, each after a label such as `error`, each kept on its line. */
export function complain(label: string, lines: readonly string[]): Promise<void> {
  const text = lines.map((line) => `${label}: ${escapeUnprintable(line)}\n`).join('');
  return new Promise((done) => process.stderr.write(text, () => done()));
}

/** What went wrong, one line per error, without stacks. */
export function describeError(error: unknown): string[] {
  if (hasLines(error)) return [...error.lines];
  const text = error instanceof Error ? error.message || error.name : String(error);
  return [text.replace(/\s*\n\s*/g, ' ').trim()];
}

/** An error that carries all findings of a config file, a line for each. */
function hasLines(error: unknown): error is Error & { readonly lines: readonly string[] } {
  return error instanceof Error && 'lines' in error && Array.isArray(error.lines);
}
