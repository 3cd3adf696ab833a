import type { Debts } from '../plugins-sdk/state/debts.ts';

/** Lets a plugin's work go on in the background, after the request. */
export type InBackground = (plugin: string, work: Promise<unknown>) => void;

/**
 * Returns the function behind `services.background`.
 * @param running counts the work that has not ended.
 * @param failed is called for each rejection.
 */
export function inBackground(running: Debts, failed: (plugin: string, error: unknown) => void): InBackground {
  return (plugin, work) => {
    const then: unknown = Reflect.get(Object(work), 'then');
    // A function would never be called, and the plugin's author would not notice.
    if (typeof then !== 'function') throw new TypeError('services.background takes a promise');
    const ended = running.owe({ message: `plugin "${plugin}": work in the background was cut off`, fields: {} });
    void Promise.resolve(work)
      .catch((error: unknown) => failed(plugin, error))
      .finally(ended);
  };
}
