import { LATE, withTimeout } from '../lib/time.ts';
import type { Debts } from '../plugins-sdk/state/debts.ts';

/** Milliseconds that work in flight has to finish after a signal, without open debts and with them. */
export const DRAIN_TIME_MS = 25_000;
export const LONGEST_DRAIN_MS = 45_000;
/** Milliseconds for an answer to be sent once its debt is paid. */
const LAST_WORDS_MS = 1000;

/**
 * Waits for the end of work in flight, longer while debts to clients are open.
 *
 * @param delay milliseconds for which the service still accepts requests.
 * @returns whether the work ended; the debts report themselves.
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
