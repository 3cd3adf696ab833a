import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const WAKE_MS = 200;
/** A signal without effect, but for a process that handles it. */
const SIGNAL = 'SIGURG';
const ignore = () => {};

/**
 * Wakes the threads of this process from time to time, so that they look again at what they wait for. A process that is killed
 * just as it is woken for the lock of an LMDB file takes the wake-up with it: others would sleep beside a lock that is free.
 *
 * @returns ends it.
 */
export function wakeThreads(isWaiting: () => boolean): () => void {
  process.on(SIGNAL, ignore);
  const timer = setInterval(() => isWaiting() && wakeEach(), WAKE_MS).unref();
  return () => {
    clearInterval(timer);
    process.off(SIGNAL, ignore);
  };
}

async function wakeEach(): Promise<void> {
  try {
    for (const thread of readdirSync('/proc/self/task')) {
      // Linux gives a signal for the number of a thread to that thread. It drops one that comes before another is taken.
      process.kill(Number(thread), SIGNAL);
      await sleep(1, undefined, { ref: false });
    }
  } catch {
    // A thread has just ended, or the system is another one.
  }
}
