import { complain } from './terminal.ts';
import { escapeUnprintable } from './text.ts';

type Report = (message: string) => Promise<void>;

let report: Report = (message) => complain('error', [message]);
let crashed = false;

/** Says where errors that nobody foresaw are reported: on stderr, until this is called. */
export function reportCrashesTo(next: Report): void {
  report = next;
}

/** The error in one line, with the place where it was thrown: plugins share the process, and one must be found. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return escapeUnprintable(String(error));
  const place = error.stack?.split('\n').find((line) => /^ +at /.test(line));
  return escapeUnprintable(`${error.name}: ${error.message}${place === undefined ? '' : ` (${place.trim()})`}`);
}

/**
 * Ends the process, with exit code 1 and one line, on an exception that nobody caught: what runs on after it would be in
 * an unknown state, holding a key. A promise that a plugin forgot to await leaves nobody's state half changed, and
 * clients could cause one at will by disconnecting: it is reported, and the service goes on.
 */
export function watchForCrashes(): void {
  process.on('unhandledRejection', (error: unknown) => {
    void report(`unhandled rejection, of a promise that nobody awaits: ${textOf(error)}`);
  });
  process.on('uncaughtException', (error: unknown) => {
    if (crashed) return;
    crashed = true;
    void report(`uncaught exception: ${textOf(error)}`).finally(() => process.exit(1));
  });
}
