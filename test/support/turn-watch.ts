import { readFileSync, writeSync } from 'node:fs';

/**
 * Loaded into a measured program by `--import`: prints the long turns of its event loop, as `turn <milliseconds>` of its main thread's
 * CPU. It keeps the loop turning all the time, so nothing else can be measured beside.
 */

const LEAST = 2;
const file = `/proc/self/task/${process.pid}/schedstat`;

/** Milliseconds of CPU of the main thread. */
function used(): number {
  return Number(readFileSync(file, 'latin1').split(' ')[0]) / 1e6;
}

let last = used();

function turn(): void {
  const now = used();
  if (now - last >= LEAST) writeSync(2, `turn ${(now - last).toFixed(1)}\n`);
  last = used();
  setImmediate(turn).unref();
}

setImmediate(turn).unref();
