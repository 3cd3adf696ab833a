import { ConfigErrors } from '../config/index.ts';
import type { Environment } from '../plugins-sdk/signing/variables.ts';
import { logSettings } from './log.ts';
import { messageOf } from './text.ts';

/** Reads what the variables are now. */
export type ReadVariables = () => Environment | Promise<Environment>;

/** The variables for a reload cannot be read. */
class Unreadable extends Error {}

/** @throws Unreadable, also for a level of the log that is none. */
export async function readNow(variables: ReadVariables): Promise<Environment> {
  try {
    const env = await variables();
    logSettings(env);
    return env;
  } catch (error) {
    throw new Unreadable(messageOf(error));
  }
}

/** The lines that say why the config of a reload cannot be used. */
export function faultsOf(error: unknown): string[] {
  const lines = error instanceof ConfigErrors ? error.lines : messageOf(error).split('\n');
  const isOfConfig = error instanceof ConfigErrors || error instanceof Unreadable;
  return isOfConfig ? [...lines] : [...lines, 'the plugins of the new config cannot be used'];
}

/** Runs reloads one after the other, so that the files that were read last win. Calls that come while one waits to begin share it. */
export class ReloadQueue<T> {
  #last: Promise<unknown> = Promise.resolve();
  #waiting: Promise<T> | undefined;

  run(reload: () => Promise<T>): Promise<T> {
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
