import { type CompareAndSetOptions, type StateArea, StateUnavailable } from './area.ts';

/** Most attempts. Each fails only if another writer has succeeded. */
const TRIES = 20;

/**
 * Changes a value, even while other processes write to the same key.
 * @param change gets the value and returns the new one, or `undefined` to delete it. If it returns the text that it got, nothing
 *   is written. It may be called several times.
 * @returns the value after the change.
 * @throws StateUnavailable
 */
export async function update(
  area: StateArea,
  key: string,
  change: (text: string | undefined) => string | undefined,
  options?: CompareAndSetOptions,
): Promise<string | undefined> {
  let text = await area.get(key);
  for (let tries = 0; tries < TRIES; tries += 1) {
    const next = change(text);
    if (next === text) return text;
    const conflict = await area.compareAndSet(key, text, next, options);
    if (conflict === undefined) return next;
    text = conflict.value;
  }
  throw new StateUnavailable('others change the same key of settings.state all the time');
}
