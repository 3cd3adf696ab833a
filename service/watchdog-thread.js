import { writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';

/** JavaScript, so that this thread needs no loader. `watchdog.ts` says what it is for. */

const { beats, limit, period, line } = workerData;

let beat = 0;
let stalled = 0;
let last = performance.now();

setInterval(() => {
  const now = performance.now();
  // A longer interval is one in which this thread did not run either: the machine is overloaded, or was asleep.
  stalled += Math.min(now - last, period);
  last = now;
  if (Atomics.load(beats, 0) !== beat) stalled = 0;
  beat = Atomics.load(beats, 0);
  if (stalled < limit) return;
  try {
    writeSync(1, line.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/, new Date().toISOString()));
  } catch {
    // The reader is gone, or too slow.
  }
  process.kill(process.pid, 'SIGKILL');
}, period);
