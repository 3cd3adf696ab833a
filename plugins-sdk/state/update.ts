import { type CompareAndSetOptions, type StateArea, StateUnavailable } from './area.ts';

/** Tries to write among others who write: each fails only where another succeeded. */
const TRIES = 20;

/**
 * Changes a value, whatever other processes write there.
 * @param change gives what is to stand there, `undefined` for nothing; the text that it gets changes nothing. It may be called
 *   several times.
 * @returns what stands there now.
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
    const standing = await area.compareAndSet(key, text, next, options);
    if (standing === undefined) return next;
    text = standing.value;
  }
  throw new StateUnavailable('others change the same key of settings.state all the time');
}
