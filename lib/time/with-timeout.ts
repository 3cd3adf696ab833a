import { LONGEST_TIMER } from './timer.ts';

/** The result of work that did not end in time. */
export const LATE: unique symbol = Symbol('late');

/** Waits for the result of `work`, and returns {@link LATE} if it does not come in time. The work itself goes on. */
export function withTimeout<T>(milliseconds: number, work: Promise<T>): Promise<T | typeof LATE>;
/** @param late called if the work is late: returns the result instead, or throws. */
export function withTimeout<T>(milliseconds: number, work: Promise<T>, late: () => T): Promise<T>;
export async function withTimeout<T>(milliseconds: number, work: Promise<T>, late: () => T | typeof LATE = () => LATE) {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<() => T | typeof LATE>((resolve) => {
    timer = setTimeout(resolve, Math.min(milliseconds, LONGEST_TIMER), late);
  });
  try {
    const first = await Promise.race([work.then((result) => () => result), timeout]);
    return first();
  } finally {
    clearTimeout(timer);
  }
}
