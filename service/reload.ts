import type { Environment } from '../plugins-sdk/signing/variables.ts';

/** Reads the current environment variables. */
export type ReadVariables = () => Environment | Promise<Environment>;

/**
 * Returns a function that runs reloads one after the other, so that the files read last win. Calls that come while one waits to
 * begin share it.
 */
export function reloadQueue() {
  let last: Promise<unknown> = Promise.resolve();
  let waiting: Promise<boolean> | undefined;
  return (reload: () => Promise<boolean>): Promise<boolean> => {
    const begin = () => {
      waiting = undefined;
      return reload();
    };
    waiting ??= last.then(begin, begin);
    last = waiting;
    return waiting;
  };
}
