import { setImmediate } from 'node:timers/promises';

/** Work that yields where other work may have a turn of the event loop. */
export type Steps<T> = Generator<void, T>;

/** Bytes of JSON text that are handled in one turn of the event loop: a few milliseconds for the text that is worst to read. */
export const STEP = 64 * 1024;

/** Does the work, and gives other work a turn wherever it yields. */
export async function inTurns<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    await setImmediate();
  }
}

/** Does the work in one turn. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}
