import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { LogSink } from './log-sink.ts';
import { escapeUnprintable } from './text.ts';

/** Where the reason for the end of the process is written. */
interface Reporter {
  error(message: string): void;
  /** Writes out what waits, now. */
  flush(): void;
}

const stderr = new LogSink(2);
let reporter: Reporter = {
  error: (message) => {
    stderr.write(`error: ${escapeUnprintable(message)}\n`);
    stderr.flushSync();
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

/** Ends the process with exit code 1, for a reason that is the last line of the log. */
export function crash(reason: string): never {
  explain(reason);
  process.exit(1);
}

function explain(reason: string): void {
  if (explained) return;
  explained = true;
  reporter.error(reason);
  reporter.flush();
}

/** The error with the place where it was thrown: plugins share the process, and one must be found. */
function errorText(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}${placeIn(error)}` : String(error);
  } catch {
    // A plugin may throw what cannot be read.
    return 'an error that cannot be shown';
  }
}

/** The file and line where an error was made, in brackets; nothing where only node's own code did it. */
export function placeIn({ stack = '' }: { readonly stack?: string }): string {
  const place = stack.split('\n').find((line) => /^ +at .*[/\\]/.test(line) && !line.includes('node:'));
  return place === undefined ? '' : ` (${place.trim()})`;
}

function explainForeign(how: string): void {
  if (!done) explain(`the process was ended by code that is not its own, such as a plugin's: ${how}`);
}

/** Signals that end a process which does not listen to them. */
const DEADLY = ['SIGKILL', 'SIGABRT', 'SIGQUIT', 'SIGSEGV', 'SIGTERM', 'SIGINT', 'SIGHUP'] as const;

function killsItself([pid, signal = 'SIGTERM']: readonly unknown[]): boolean {
  const deadly = DEADLY.find((known) => known === signal || constants.signals[known] === signal);
  return deadly !== undefined && process.listenerCount(deadly) === 0 && reachesItself(pid);
}

/** Whether a signal to this comes to the process: by its number, or to its group, which is 0 and the group's negative number. */
function reachesItself(pid: unknown): boolean {
  // Node takes whatever equals an integer, but not null.
  const number = pid === null ? Number.NaN : Number(pid);
  return number === process.pid || number === 0 || (number < -1 && -number === ownGroup());
}

function ownGroup(): number {
  try {
    // Behind the name, which may hold brackets and spaces of its own: the state, the parent, the group.
    const [, , group] = readFileSync('/proc/self/stat', 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ');
    return Number(group);
  } catch {
    // Where the system does not tell, it is taken for the first of its group, as a service is.
    return process.pid;
  }
}

/** Has a line written before a call that ends the process: of most such calls no event tells, and of none who made it. */
function watchCalls(): void {
  for (const name of ['exit', 'reallyExit', 'abort', 'kill'] as const) {
    const original: unknown = Reflect.get(process, name);
    if (typeof original !== 'function') continue;
    Reflect.set(process, name, function watched(...args: readonly unknown[]): unknown {
      const caller = { stack: '' };
      Error.captureStackTrace(caller, watched);
      if (name !== 'kill' || killsItself(args)) explainForeign(`process.${name}(${args.join(', ')})${placeIn(caller)}`);
      try {
        // To a supervisor 0 would mean that all is well.
        return Reflect.apply(original, process, name === 'reallyExit' && !done ? [args[0] || 1] : args);
      } catch (error) {
        // Where a listener throws, the process would live on without ever running what is due in a next tick.
        if (name === 'exit') crash(`uncaught exception: ${errorText(error)}`);
        throw error;
      }
    });
  }
}

/**
 * Ends the process, with exit code 1 and one line, on an exception that nobody caught. Code that runs on after it would be in
 * an unknown state, holding a key. A promise that a plugin forgot to await leaves nobody's state half changed, and
 * clients could cause one at will by disconnecting. It is reported, and the service goes on. Where code that is not the
 * program's ends the process, one line says so, and the exit code is not 0.
 */
export function watchForCrashes(): void {
  process.on('unhandledRejection', (error: unknown) => {
    reporter.error(`unhandled rejection, of a promise that nobody awaits: ${errorText(error)}`);
  });
  process.on('uncaughtException', (error: unknown) => crash(`uncaught exception: ${errorText(error)}`));
  process.on('exit', (code) => {
    explainForeign(`exit code ${code}`);
    if (code === 0 && !done) process.exitCode = 1;
  });
  watchCalls();
}
