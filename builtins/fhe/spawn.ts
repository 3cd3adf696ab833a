import { Worker, type WorkerOptions } from 'node:worker_threads';
import type { Connection } from './protocol.ts';

/** Megabytes of JavaScript objects; the SDK needs a tenth of it. The memory of its WebAssembly does not count. */
const HEAP = 256;

/**
 * What the thread of the SDK gets: no variable (the environment may hold secrets of other plugins), no flag of node, and
 * nowhere to write to. The SDK and its libraries write what they see fit, URLs included.
 */
export function workerOptions(connection: Connection): WorkerOptions {
  return {
    name: 'fhe',
    workerData: connection,
    env: {},
    argv: [],
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: HEAP },
  };
}

/** Starts the thread in which the SDK is loaded. */
export function spawnWorker(connection: Connection): Worker {
  const worker = start(workerOptions(connection));
  // Output that nobody reads would pile up in memory.
  worker.stdout.resume();
  worker.stderr.resume();
  return worker;
}

/** The entry lies beside this file and is written in the same language. */
function start(options: WorkerOptions): Worker {
  if (!import.meta.url.endsWith('.ts')) return new Worker(new URL('./worker.js', import.meta.url), options);
  // Node 20 hands no loader on to a thread.
  const tsx = JSON.stringify(import.meta.resolve('tsx/esm/api'));
  const entry = JSON.stringify(new URL('./worker.ts', import.meta.url).href);
  return new Worker(`import(${tsx}).then(({ register }) => (register(), import(${entry})))`, {
    ...options,
    eval: true,
  });
}
