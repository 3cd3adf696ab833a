import { openSync, readSync, writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';

/** JavaScript, so that this thread needs no loader. `watchdog.ts` says what it is for. */

const { shared, event, limit, period, line } = workerData;
const [BEATS, DEBUGGED, ENDING] = [0, 1, 2];

/** Milliseconds that the main thread has to end the process once it has been told to, and again once it has begun. */
const EXIT_TIMEOUT_MS = 5000;

/** Where Linux tells how long the main thread ran and waited. Kept open: there may be no file descriptor when one is needed. */
function openSchedule() {
  try {
    return openSync('/proc/self/schedstat', 'r');
  } catch {
    return undefined;
  }
}

const schedule = openSchedule();
const buffer = Buffer.alloc(100);

/** Milliseconds that the main thread has waited for a processor. */
function waitedForProcessor() {
  if (schedule === undefined) return 0;
  const text = buffer.latin1Slice(0, readSync(schedule, buffer, 0, buffer.length, 0));
  return Number(text.split(' ')[1]) / 1e6 || 0;
}

let beats = 0;
let stalled = 0;
let last = performance.now();
let waited = waitedForProcessor();

const timer = setInterval(() => {
  const [now, waitedNow] = [performance.now(), waitedForProcessor()];
  // A longer interval is one in which this thread did not run either: the machine is overloaded, or was asleep.
  stalled += Math.min(now - last, period) - (waitedNow - waited);
  [last, waited] = [now, waitedNow];
  const isAlive = Atomics.load(shared, BEATS) !== beats || Atomics.load(shared, DEBUGGED) === 1;
  beats = Atomics.load(shared, BEATS);
  if (isAlive) stalled = 0;
  else if (stalled >= limit) void endProcess();
}, period);

async function endProcess() {
  clearInterval(timer);
  try {
    // V8 lets a debugger in between two steps of code that never returns.
    const { Session } = await import('node:inspector');
    const session = new Session();
    session.connectToMainThread();
    session.post('Runtime.evaluate', { expression: `process.emit(${JSON.stringify(event)})` });
  } catch {
    // A node without a debugger.
  }
  setTimeout(killProcess, EXIT_TIMEOUT_MS);
}

function killProcess() {
  if (Atomics.exchange(shared, ENDING, 1) === 1) {
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), EXIT_TIMEOUT_MS);
    return;
  }
  try {
    writeSync(1, line.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/, new Date().toISOString()));
  } catch {
    // Nobody reads.
  }
  process.kill(process.pid, 'SIGKILL');
}
