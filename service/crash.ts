import { errorForLog } from '../kernel/refusal.ts';
import type { ProcessLog } from './log.ts';
import { complain } from './terminal.ts';

/** The log that gets the reason for the end of the process. */
type Reporter = Pick<ProcessLog, 'error' | 'flush'>;

let reporter: Reporter = {
  error: (message) => void complain('error', [message]),
  flush: () => undefined,
};
/** Whether the process ends on purpose, or the log has the reason already. */
let done = false;

/** Sets where crashes are reported; until the first call that is stderr. */
export function reportCrashesTo(next: Reporter): void {
  reporter = next;
}

/** Ends the process on purpose. Any other exit is reported as a crash. */
export function end(code: number): never {
  done = true;
  process.exit(code);
}

/** Writes the reason as the last line of the log. */
function explain(reason: string): void {
  reporter.error(reason);
  reporter.flush();
}

/** Returns the error's text and the first file in its stack: plugins share the process, and the faulty one must be found. */
function errorText(error: unknown): string {
  const [said = '', ...frames] = errorForLog(error).split(/\n +(?=at )/);
  const place = frames.find((frame) => /[/\\]/.test(frame) && !frame.includes('node:'));
  return place === undefined ? said : `${said} (${place})`;
}

/**
 * Handles errors that nobody caught, and exits of other code.
 * An uncaught exception ends the process with one line and exit code 1: code that ran on would be in an unknown state,
 * holding a key. An unhandled rejection is only reported: a promise that a plugin forgot to await leaves no state half
 * changed, and clients could cause one at will by disconnecting. An exit by other code is reported with one line, and
 * its exit code is not 0.
 */
export function watchForCrashes(): void {
  process.on('unhandledRejection', (error: unknown) => {
    reporter.error(`unhandled rejection, of a promise that nobody awaits: ${errorText(error)}`);
  });
  process.on('uncaughtException', (error: unknown) => {
    explain(`uncaught exception: ${errorText(error)}`);
    end(1);
  });
  process.on('exit', (code) => {
    if (done) return;
    explain(`the process was ended by code that is not its own, such as a plugin's: exit code ${code}`);
    // To a supervisor, exit code 0 would mean success.
    if (code === 0) process.exitCode = 1;
  });
}
