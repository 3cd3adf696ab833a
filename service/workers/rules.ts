import { ConfigErrors, type LoadedConfig } from '../../config/index.ts';
import { errorAt, type Finding, warningAt } from '../../plugins-sdk/define.ts';
import { engineTypeOf } from '../state-engine.ts';

/**
 * Checks that several processes can serve a config.
 * @returns warnings. @throws ConfigErrors when they cannot.
 */
export function checkTogether(loaded: LoadedConfig): Finding[] {
  if (engineTypeOf(loaded) !== undefined) return [];
  const engines = loaded.plugins.flatMap(({ definition }) => Object.keys(definition.engines ?? {}));
  const advice = `set settings.state to an engine for several processes${engines.length > 0 ? `, such as ${engines.join(' or ')}` : ''}`;
  const fault = (what: string) => errorAt('server.workers', `${what} needs state that all workers share: ${advice}`);
  const faults = needsOf(loaded).map(fault);
  if (faults.length > 0) throw new ConfigErrors(faults);
  return [warningAt('server.workers', 'answers that are kept are those of each worker without settings.state')];
}

/** Returns the endpoints' modes and auth methods that need state shared by all processes. */
function needsOf({ plugins, endpoints }: LoadedConfig): string[] {
  const needs = plugins.flatMap(({ definition }) => definition.requiresSharedState ?? []);
  const modes = new Set(endpoints.map(({ mode }) => mode));
  const methods = new Set(endpoints.flatMap(({ auth }) => auth.map(({ type }) => type)));
  return [
    ...needs.flatMap((need) => need.modes ?? []).flatMap((mode) => (modes.has(mode) ? [`mode "${mode}"`] : [])),
    ...needs.flatMap((need) => need.auth ?? []).flatMap((type) => (methods.has(type) ? [`auth "${type}"`] : [])),
  ];
}
