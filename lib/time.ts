/** The longest delay of a Node.js timer, in milliseconds. */
export const LONGEST_TIMER = 2 ** 31 - 1;

/**
 * Makes a clock that never goes back. It counts the whole milliseconds by which `now` has moved forward since the clock
 * was made. A step back of the source is skipped, so that it prolongs no wait.
 * @param now - the source in milliseconds; by default the process's own monotonic clock.
 */
export function steadyClock(now: () => number = () => performance.now()): () => number {
  let last = Math.floor(now());
  let elapsed = 0;
  return () => {
    const time = Math.floor(now());
    elapsed += Math.max(0, time - last);
    last = time;
    return elapsed;
  };
}

/** A promise with the function that resolves it. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T | Promise<T>): void;
}

/** Makes a promise that other code resolves. */
export function deferred<T>(): Deferred<T> {
  let resolve: Deferred<T>['resolve'] = () => undefined;
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

/** Returns a throttled `work`: calls within so many milliseconds of the last one that was carried out do nothing. */
export function atMostEvery<A extends readonly unknown[]>(milliseconds: number, work: (...args: A) => void) {
  let last = Number.NEGATIVE_INFINITY;
  return (...args: A): void => {
    if (performance.now() - last < milliseconds) return;
    last = performance.now();
    work(...args);
  };
}

/** The result of work that did not end in time. */
export const LATE: unique symbol = Symbol('late');

/** Waits for the result of `work`, and returns {@link LATE} if it does not come in time. The work itself goes on. */
export async function withTimeout<T>(milliseconds: number, work: T | Promise<T>): Promise<T | typeof LATE> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<typeof LATE>((resolve) => {
    timer = setTimeout(resolve, Math.min(milliseconds, LONGEST_TIMER), LATE);
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
