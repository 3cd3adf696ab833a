import { ConfigErrors, type LoadedConfig } from '../config/index.ts';
import { type Definition, errorAt, type Finding, warningAt } from '../plugins-sdk/define.ts';
import { stateKey } from '../plugins-sdk/keys.ts';
import type { Log } from '../plugins-sdk/log.ts';
import { isRecord } from '../plugins-sdk/schema/path.ts';
import type { Dependency } from '../plugins-sdk/services.ts';
import type { SharedState } from '../plugins-sdk/state/area.ts';
import { StateClient } from './shared-state.ts';

/** Returns the engines that plugins have, by the type that a config names. */
function enginesOf({ plugins }: LoadedConfig) {
  return new Map(plugins.flatMap(({ definition }) => Object.entries(definition.engines ?? {})));
}

/** Returns the engine that a config names, not started yet; undefined where state is kept in the process. @throws Error */
export function openState(loaded: LoadedConfig, log: Log, now = Date.now): StateClient | undefined {
  const chosen = stateKey.in(loaded.config);
  if (!isRecord(chosen)) return undefined;
  const { type: asked, ...rest } = chosen;
  const name = String(asked);
  const type = enginesOf(loaded).get(name);
  if (type === undefined) throw new Error(`no plugin has the engine "${name}"`);
  const engine = type.open(rest, { log, now, path: loaded.path });
  return new StateClient({ name, type, engine, log, hide: loaded.hide });
}

/** Returns the engine's part of a config as a text, to compare configs. */
export function stateOf({ config }: LoadedConfig): string {
  return JSON.stringify(stateKey.in(config) ?? 'memory');
}

/** Returns the auth methods and the modes that need state which all processes share. */
function needsOf(definitions: readonly Definition[]) {
  const needs = definitions.flatMap((definition) => definition.requiresSharedState ?? []);
  return { auth: needs.flatMap(({ auth = [] }) => auth), modes: needs.flatMap(({ modes = [] }) => modes) };
}

/** Returns the engine as a dependency of the endpoints whose mode needs it, or all of whose auth methods do. */
export function stateDependency(
  definitions: readonly Definition[],
  stateEngine: SharedState | undefined,
): Dependency[] {
  if (stateEngine === undefined) return [];
  const needs = needsOf(definitions);
  const isNeeded: Dependency['isNeeded'] = ({ mode, auth }) =>
    needs.modes.includes(mode) || auth.every(({ type }) => needs.auth.includes(type));
  return [{ name: stateEngine.engine, isAvailable: () => stateEngine.available(), isNeeded }];
}

/** Checks that several processes can serve a config. @returns warnings. @throws ConfigErrors when they cannot. */
export function checkTogether(loaded: LoadedConfig): Finding[] {
  if (isRecord(stateKey.in(loaded.config))) return [];
  const { auth, modes } = needsOf(loaded.plugins.map(({ definition }) => definition));
  const usedModes = new Set(loaded.endpoints.map(({ mode }) => mode));
  const usedAuth = new Set(loaded.endpoints.flatMap((endpoint) => endpoint.auth.map(({ type }) => type)));
  const engines = [...enginesOf(loaded).keys()];
  const advice = `set settings.state to an engine for several processes${engines.length > 0 ? `, such as ${engines.join(' or ')}` : ''}`;
  const fault = (what: string) => errorAt('server.workers', `${what} needs state that all workers share: ${advice}`);
  const faults = [
    ...modes.filter((mode) => usedModes.has(mode)).map((mode) => fault(`mode "${mode}"`)),
    ...auth.filter((type) => usedAuth.has(type)).map((type) => fault(`auth "${type}"`)),
  ];
  if (faults.length > 0) throw new ConfigErrors(faults);
  return [warningAt('server.workers', 'answers that are kept are those of each worker without settings.state')];
}
