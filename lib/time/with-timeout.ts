import { LONGEST_TIMER } from './timer.ts';

/** Stands for the result of work that did not end in time. */
export const LATE: unique symbol = Symbol('late');

/** What somebody else's work comes to, if it comes in time; otherwise {@link LATE}. */
export function withTimeout<T>(milliseconds: number, work: Promise<T>): Promise<T | typeof LATE>;
/** @param late returns what is to be had otherwise, or throws. */
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
