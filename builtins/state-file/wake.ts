import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds between two looks whether some work has ended. */
const LOOK_MS = 100;
/** A signal without effect, but for a process that handles it. */
const SIGNAL = 'SIGURG';
const ignore = () => {};

/**
 * Wakes the threads of this process while all work waits, so that they look again at what they wait for. A process that is killed
 * just as it is woken for the lock of an LMDB file takes the wake-up with it: others would sleep beside a lock that is free.
 * It cannot wake the main thread, which waits for that lock only as it opens the file.
 */
export class Waker {
  #waiting = 0;
  #hasEnded = false;
  #timer: NodeJS.Timeout | undefined;

  start(): void {
    process.on(SIGNAL, ignore);
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** Waits for work. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    try {
      return await work();
    } finally {
      this.#waiting -= 1;
      this.#hasEnded = true;
    }
  }

  end(): void {
    clearInterval(this.#timer);
    process.off(SIGNAL, ignore);
  }

  #look(): void {
    if (this.#waiting > 0 && !this.#hasEnded) void wakeThreads();
    this.#hasEnded = false;
  }
}

async function wakeThreads(): Promise<void> {
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
