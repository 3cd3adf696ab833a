import { writeSync } from 'node:fs';
import { errorForLog } from '../kernel/refusal.ts';
import { escapeUnprintable } from './text.ts';

/** Where the reason for the end of the process is written. */
interface Reporter {
  error(message: string): void;
  /** Writes out what waits, now. */
  flush(): void;
}

let reporter: Reporter = {
  error: (message) => {
    try {
      writeSync(2, `error: ${escapeUnprintable(message)}\n`);
    } catch {
      // The reader is gone.
    }
  },
  flush: () => undefined,
};
/** Whether the process ends because it is done. */
let done = false;
/** Whether the log has the reason already. Only the first is the cause; later ones follow from it. */
let explained = false;

/** Says where errors that nobody foresaw are reported: on stderr, until this is called. */
export function reportCrashesTo(next: Reporter): void {
  reporter = next;
}

/** Ends the process on purpose; an end that other code brings about is reported. */
export function end(code: number): never {
  done = true;
  process.exit(code);
}

/** The reason is the last line of the log. */
function explain(reason: string): void {
  if (explained) return;
  explained = true;
  reporter.error(reason);
  reporter.flush();
}

/** The error with the place where it was thrown, if that is in code of a file: plugins share the process, and one must be found. */
function errorText(error: unknown): string {
  const [said = '', ...frames] = errorForLog(error).split(/\n +(?=at )/);
  const place = frames.find((frame) => /[/\\]/.test(frame) && !frame.includes('node:'));
  return place === undefined ? said : `${said} (${place})`;
}

/**
 * Ends the process, with exit code 1 and one line, on an exception that nobody caught. Code that runs on after it would be in
 * an unknown state, holding a key. A promise that a plugin forgot to await leaves nobody's state half changed, and
 * clients could cause one at will by disconnecting. It is reported, and the service goes on. Where code that is not the
 * program's exits, one line says so, and the exit code is not 0.
 */
export function watchForCrashes(): void {
  process.on('unhandledRejection', (error: unknown) => {
    reporter.error(`unhandled rejection, of a promise that nobody awaits: ${errorText(error)}`);
  });
  process.on('uncaughtException', (error: unknown) => {
    explain(`uncaught exception: ${errorText(error)}`);
    process.exit(1);
  });
  process.on('exit', (code) => {
    if (done) return;
    explain(`the process was ended by code that is not its own, such as a plugin's: exit code ${code}`);
    // To a supervisor 0 would mean that all is well.
    if (code === 0) process.exitCode = 1;
  });
}
