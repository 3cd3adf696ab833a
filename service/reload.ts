import type { Environment } from '../plugins-sdk/signing/variables.ts';

/** Reads the current environment variables. */
export type ReadVariables = () => Environment | Promise<Environment>;

/** Runs reloads one after the other, so that the files read last win. Calls that come while one waits to begin share it. */
export class ReloadQueue {
  #last: Promise<unknown> = Promise.resolve();
  #waiting: Promise<boolean> | undefined;

  run(reload: () => Promise<boolean>): Promise<boolean> {
    const begin = () => {
      this.#waiting = undefined;
      return reload();
    };
    const waiting = this.#waiting ?? this.#last.then(begin, begin);
    this.#waiting = waiting;
    this.#last = waiting;
    return waiting;
  }
}
