import { hint } from '../../lib/suggest.ts';
import { LATE, withTimeout } from '../../lib/time.ts';

/** Milliseconds for each step of loading a plugin: its module, the parser of its config, its factory, and its process. */
const LOAD_TIMEOUT_MS = 30_000;

/** Thrown when a plugin cannot be used. The message is one line without the plugin's name. */
export class PluginProblem extends Error {}

/** Waits for one step of loading a plugin. @throws PluginProblem when the step takes too long */
export async function loadedInTime<T>(step: Promise<T>): Promise<T> {
  const loaded = await withTimeout(LOAD_TIMEOUT_MS, step);
  if (loaded === LATE) throw new PluginProblem(`is not ready after ${LOAD_TIMEOUT_MS} ms`);
  return loaded;
}

/** Refuses unknown members, since a misspelt one would be ignored. @throws PluginProblem */
export function refuseUnknown(members: readonly string[], known: readonly string[], where: string): void {
  const odd = members.find((member) => !known.includes(member));
  if (odd !== undefined) throw new PluginProblem(`${where} "${odd}"${hint(odd, known, 'known')}`);
}
