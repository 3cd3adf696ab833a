import { after } from 'node:test';
import { inTime } from './wait.ts';

interface Stoppable {
  stop(): Promise<unknown>;
}
interface Closable {
  close(): Promise<unknown>;
}

/** A test, or the {@link suite}: what is started for it ends with it. */
export interface Lifetime {
  after(end: () => Promise<void>): void;
}

/** The suite whose body is running: that of a `describe`, or of a file. Hooks such as `before` are no such body. */
export const suite: Lifetime = { after };

/** Stops what a test or a suite has started, one after the other; what has not come to be started is `undefined`. */
export async function stopAll(...started: readonly (Stoppable | Closable | undefined)[]): Promise<void> {
  for (const each of started)
    if (each !== undefined)
      await inTime('stop' in each ? each.stop() : each.close(), 'the end of what was started', 120_000);
}

/** What is started here ends with the test or the suite. */
export async function endsWith<T extends Stoppable | Closable>(lifetime: Lifetime, starting: Promise<T>): Promise<T> {
  const started = await starting;
  lifetime.after(() => stopAll(started));
  return started;
}
