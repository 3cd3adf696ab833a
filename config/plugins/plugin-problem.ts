import { hint } from '../../lib/text/suggest.ts';

/** Thrown when a plugin cannot be used. The message is one line without the plugin's name. */
export class PluginProblem extends Error {}

/** Returns a function that ends the wait for a plugin by throwing a {@link PluginProblem}. */
export const notReadyAfter = (milliseconds: number) => (): never => {
  throw new PluginProblem(`is not ready after ${milliseconds} ms`);
};

/** Refuses unknown members, since a misspelt one would be ignored. @throws PluginProblem */
export function refuseUnknown(members: readonly string[], known: readonly string[], where: string): void {
  const odd = members.find((member) => !known.includes(member));
  if (odd !== undefined) throw new PluginProblem(`${where} "${odd}"${hint(odd, known, 'known')}`);
}
