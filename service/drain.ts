import { LATE, withTimeout } from '../lib/time/with-timeout.ts';
import type { Debts } from '../plugins-sdk/state/debts.ts';

/** Milliseconds that work in flight has to finish after a signal, and that it has while somebody is owed for it. */
export const DRAIN_TIME_MS = 25_000;
export const LONGEST_DRAIN_MS = 45_000;
/** Milliseconds for an answer to get out once nothing is owed for it any more. */
const LAST_WORDS_MS = 1000;

/**
 * Waits for the end of work in flight, within bounds that are wider while clients are owed something.
 *
 * @param delay milliseconds for which the service goes on to accept.
 * @returns whether the work ended; what is owed beyond it is for the debts to tell.
 */
export async function drained(work: Promise<unknown>, debts: Debts, delay: number): Promise<boolean> {
  const last = performance.now() + LONGEST_DRAIN_MS + delay;
  let isOver = false;
  const ended = work.then(() => {
    isOver = true;
    return debts.paid();
  });
  let isDone = (await withTimeout(DRAIN_TIME_MS + delay, ended)) !== LATE;
  while (!isDone && debts.size > 0 && performance.now() < last) {
    await withTimeout(last - performance.now(), Promise.race([ended, debts.paid()]));
    isDone = (await withTimeout(Math.min(LAST_WORDS_MS, Math.max(last - performance.now(), 0)), ended)) !== LATE;
  }
  return isOver;
}
