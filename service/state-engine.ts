import type { LoadedConfig } from '../config/index.ts';
import type { Definition } from '../plugins-sdk/define.ts';
import { stateKey } from '../plugins-sdk/keys.ts';
import type { Log } from '../plugins-sdk/log.ts';
import { isRecord } from '../plugins-sdk/schema/path.ts';
import type { Dependency } from '../plugins-sdk/services.ts';
import type { SharedState, StateEngineType } from '../plugins-sdk/state/area.ts';
import { StateClient } from './shared-state.ts';

/** Returns the kind of engine that a config names; undefined if it names none, or no plugin has it. */
export function engineTypeOf({ config, plugins }: LoadedConfig): readonly [name: string, StateEngineType] | undefined {
  const chosen = stateKey.in(config);
  const types = plugins.flatMap(({ definition }) => Object.entries(definition.engines ?? {}));
  return isRecord(chosen) ? types.find(([name]) => name === chosen.type) : undefined;
}

/** Returns the engine that a config names, not started yet; undefined where state is kept in the process. @throws Error */
export function openState(loaded: LoadedConfig, log: Log, now = Date.now): StateClient | undefined {
  const chosen = stateKey.in(loaded.config);
  if (!isRecord(chosen)) return undefined;
  const { type: asked, ...rest } = chosen;
  const [name, type] = engineTypeOf(loaded) ?? [];
  if (name === undefined || type === undefined) throw new Error(`no plugin has the engine "${String(asked)}"`);
  const engine = type.open(rest, { log, now, path: loaded.path });
  return new StateClient({ name, type, engine, log, hide: loaded.hide });
}

/** Returns the engine's part of a config as a text, to compare configs. */
export function stateOf({ config }: LoadedConfig): string {
  return JSON.stringify(stateKey.in(config) ?? 'memory');
}

/** Returns the engine as a dependency of the endpoints whose mode needs it, or all of whose auth methods do. */
export function stateDependency(
  definitions: readonly Definition[],
  stateEngine: SharedState | undefined,
): Dependency[] {
  if (stateEngine === undefined) return [];
  const needs = definitions.flatMap((definition) => definition.requiresSharedState ?? []);
  const auth = new Set(needs.flatMap((need) => need.auth ?? []));
  const modes = new Set(needs.flatMap((need) => need.modes ?? []));
  const isNeeded: Dependency['isNeeded'] = ({ mode, auth: methods }) =>
    modes.has(mode) || methods.every(({ type }) => auth.has(type));
  return [{ name: stateEngine.engine, isAvailable: () => stateEngine.available(), isNeeded }];
}
