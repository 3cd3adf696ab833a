import { isRecord } from '../../lib/json/value.ts';
import { PluginProblem } from './plugin-problem.ts';

/** The exports of a plugin's module. */
export interface PluginModule {
  readonly plugin: unknown;
  readonly configSchema: unknown;
  readonly keys: unknown;
}

export const NO_DEFAULT = 'the module has no default export';

/** Reads the exports of a module. @returns `plugin: undefined` when there is no default export. */
export function exportsOf(namespace: unknown): PluginModule {
  const exports = isRecord(namespace) ? namespace : {};
  // A CommonJS module made from an ES module has its exports one level further down.
  const inner = isRecord(exports.default) && exports.default.__esModule === true ? exports.default : exports;
  return { plugin: inner.default, configSchema: inner.configSchema, keys: inner.keys };
}

/** Checks whether an export is a function that makes a plugin of its config. @throws PluginProblem for a class */
export function isFactory(value: unknown): value is (config: unknown) => unknown {
  if (typeof value !== 'function') return false;
  if (/^class\b/.test(Function.prototype.toString.call(value)))
    throw new PluginProblem('the default export is a class: export {name, hooks}, or a function that returns them');
  return true;
}
