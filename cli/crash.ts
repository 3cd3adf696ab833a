import { complain } from './terminal.ts';
import { escapeUnprintable } from './text.ts';

type Report = (message: string) => Promise<void>;

let report: Report = (message) => complain('error', [message]);
let crashed = false;

/** Says where errors that nobody foresaw are reported: on stderr, until this is called. */
export function reportCrashesTo(next: Report): void {
  report = next;
}

/**
 * Ends the process, with exit code 1 and one line, on an error that nobody caught: what runs on after it would be in an
 * unknown state, holding a key.
 */
export function watchForCrashes(): void {
  process.on('uncaughtException', (error: unknown, origin) => {
    if (crashed) return;
    crashed = true;
    const what = origin === 'unhandledRejection' ? 'unhandled rejection' : 'uncaught exception';
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    void report(`${what}: ${escapeUnprintable(text)}`).finally(() => process.exit(1));
  });
}
