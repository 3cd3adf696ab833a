import { url as debuggerUrl } from 'node:inspector';
import { Worker } from 'node:worker_threads';
import type { Environment } from '../plugins-sdk/signing/variables.ts';
import { createLog, type LogSettings, type ProcessLog } from './log.ts';

/** Milliseconds between two heartbeats of the event loop. */
const BEAT_INTERVAL_MS = 500;

/**
 * Reads `SERVICE_WATCHDOG`: seconds without a turn of the event loop before the process ends itself. Default 30; 0 for never.
 * @throws Error naming the variable.
 */
export function watchdogSeconds({ SERVICE_WATCHDOG: value }: Environment): number {
  if (!value) return 30;
  if (!/^\d{1,5}$/.test(value))
    throw new Error(`SERVICE_WATCHDOG must be a whole number of seconds below 100000, or 0 for none, not "${value}"`);
  return Number(value);
}

/**
 * Makes a function that starts the watchdog, once: a thread that ends the process by SIGKILL, with a last line in the log, when
 * its event loop has stopped turning. Such a process answers no request and handles no other signal. Time in which it is
 * stopped or suspended does not count. With a debugger there is no watchdog.
 */
export function watchdogOf(seconds: number, settings: LogSettings, log: ProcessLog): () => void {
  let isStarted = seconds === 0 || debuggerUrl() !== undefined;
  return () => {
    if (!isStarted) startThread(seconds, settings, log);
    isStarted = true;
  };
}

function startThread(seconds: number, settings: LogSettings, log: ProcessLog): void {
  const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  setInterval(() => Atomics.add(beats, 0, 1), BEAT_INTERVAL_MS).unref();
  let line = '';
  const reason = `the event loop has not turned for ${seconds} s: the process ends, to be started again`;
  createLog(settings, { write: (text) => (line = text) }).error(reason);
  const worker = new Worker(new URL('./watchdog-thread.cjs', import.meta.url), {
    name: 'watchdog',
    workerData: { beats, limit: seconds * 1000, period: BEAT_INTERVAL_MS, line },
    env: {},
    argv: [],
    execArgv: [],
  });
  worker.on('error', (error) => log.warn('nobody watches the event loop any more', { error }));
  worker.unref();
}
