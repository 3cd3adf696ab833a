import { hint } from '../../lib/text/suggest.ts';

/** Why a plugin cannot be used; the message is one line without the plugin's name. */
export class PluginProblem extends Error {}

/** Ends the wait for a plugin. @throws PluginProblem */
export const notReadyAfter = (milliseconds: number) => (): never => {
  throw new PluginProblem(`is not ready after ${milliseconds} ms`);
};

/** What is misspelt would be ignored. @throws PluginProblem */
export function refuseUnknown(members: readonly string[], known: readonly string[], where: string): void {
  const odd = members.find((member) => !known.includes(member));
  if (odd !== undefined) throw new PluginProblem(`${where} "${odd}"${hint(odd, known, 'known')}`);
}
