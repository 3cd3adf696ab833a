import type { EventEmitter } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { Environment } from '../plugins-sdk/signing/variables.ts';
import { crash, placeIn } from './crash.ts';
import { createLog, type LogSettings, type ProcessLog } from './log.ts';

/** Milliseconds between the event loop's signs of life. */
const BEAT_INTERVAL_MS = 500;
/** What {@link STALLED} is emitted by. */
const STALLED = 'signed-data-proxy:stalled';
/** Members of the memory shared with the thread. */
const BEATS = 0;
const DEBUGGED = 1;
const ENDING = 2;

/**
 * Seconds without a turn of the event loop after which the process ends itself: `SERVICE_WATCHDOG`, default 30, 0 for never.
 * @throws Error naming the variable.
 */
export function watchdogSeconds({ SERVICE_WATCHDOG: value }: Environment): number {
  if (!value) return 30;
  if (!/^\d{1,5}$/.test(value)) {
    throw new Error(`SERVICE_WATCHDOG must be a whole number of seconds below 100000, or 0 for none, not "${value}"`);
  }
  return Number(value);
}

/**
 * Ends the process, with exit code 1 and a last line in the log, when its event loop has not turned for a while. Code
 * that blocks it answers no request any more, hears no signal, and no supervisor finds that out without asking. A thread
 * watches. Time in which the process waits for a processor, is stopped or suspended does not count, nor does what a
 * debugger holds up.
 *
 * Code that runs JavaScript is made to end the process itself: what the log holds gets out, and the line names the place.
 * A call into the system that never returns cannot be interrupted: then the thread writes the line, and SIGKILL ends
 * the process.
 */
export function startWatchdog(seconds: number, settings: LogSettings, log: ProcessLog): void {
  if (seconds === 0) return;
  const shared = new Int32Array(new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT));
  const reason = `the event loop has not turned for ${seconds} s: the process ends, to be started again`;
  const emitter: EventEmitter = process;
  emitter.once(STALLED, function stalled() {
    Atomics.store(shared, ENDING, 1);
    const here = { stack: '' };
    Error.captureStackTrace(here, stalled);
    sayNothingOfDebuggers();
    crash(`${reason}${placeIn(here)}`);
  });
  const inspector = process.getBuiltinModule('node:inspector');
  const beat = () => {
    Atomics.add(shared, BEATS, 1);
    Atomics.store(shared, DEBUGGED, inspector?.url() === undefined ? 0 : 1);
  };
  beat();
  setInterval(beat, BEAT_INTERVAL_MS).unref();
  const worker = new Worker(new URL('./watchdog-thread.js', import.meta.url), {
    name: 'watchdog',
    workerData: {
      shared,
      event: STALLED,
      limit: seconds * 1000,
      period: BEAT_INTERVAL_MS,
      line: lineOf(reason, settings),
    },
    env: {},
    argv: [],
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 },
  });
  worker.on('error', (error) => log.warn('nobody watches the event loop any more', { error }));
  worker.unref();
}

/** Node would write to stderr that it waits for a debugger to leave: what it means is the thread, which ends with the process. */
function sayNothingOfDebuggers(): void {
  try {
    closeSync(2);
    openSync('/dev/null', 'w');
  } catch {
    // Then node's message is seen, which does no harm.
  }
}

/** The line of an error as the log would write it now, or nothing where the log is silent. */
function lineOf(message: string, settings: LogSettings): string {
  let text = '';
  createLog(settings, { write: (line) => (text = line) }).error(message);
  return text;
}
