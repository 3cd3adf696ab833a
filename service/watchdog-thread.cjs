const { writeSync } = require('node:fs');
const { workerData } = require('node:worker_threads');

/** The thread that `watchdog.ts` starts; as CommonJS it starts without the loader of ES modules. */

const { beats, limit, period, line } = workerData;

let beat = 0;
let stalled = 0;
let last = performance.now();

setInterval(() => {
  const now = performance.now();
  // In a longer interval this thread did not run either, because the machine was overloaded or asleep.
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
