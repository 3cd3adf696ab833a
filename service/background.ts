import type { Debts } from '../plugins-sdk/state/debts.ts';

/** Leaves work of a plugin to the background. */
export type InBackground = (plugin: string, work: Promise<unknown>) => void;

/** @param running counts what has not ended. @param failed told of each rejection. */
export function inBackground(running: Debts, failed: (plugin: string, error: unknown) => void): InBackground {
  return (plugin, work) => {
    const then: unknown = Reflect.get(Object(work), 'then');
    // A function would never be called, without a word.
    if (typeof then !== 'function') throw new TypeError('services.background takes a promise');
    const ended = running.owe({ message: `plugin "${plugin}": work in the background was cut off`, fields: {} });
    void Promise.resolve(work)
      .catch((error: unknown) => failed(plugin, error))
      .finally(ended);
  };
}
