import { isPlain, isRecord } from '../../lib/json/value.ts';
import type { Definition, SimplePlugin } from '../../plugins-sdk/define.ts';
import { publicHooks } from '../../plugins-sdk/hooks/public-hooks.ts';
import { PluginProblem, refuseUnknown } from './plugin-problem.ts';

// The process of an isolated plugin loads this file, so it uses no library for its checks.

const HOOKS: readonly string[] = Object.keys(publicHooks);
const LONGEST_NAME = 100;

/** Checks whether a value is a plugin with `setup`. */
export function isDefinition(value: unknown): value is Definition {
  return isRecord(value) && value.setup !== undefined;
}

/** Checks a plugin without `setup` and returns it. @throws PluginProblem unless the value is `{name, hooks}`. */
export function simplePlugin(value: unknown, what: string): SimplePlugin {
  if (!isRecord(value)) throw new PluginProblem(`${what} must be {name, hooks}`);
  if (value instanceof Promise) throw new PluginProblem(`${what} is a promise: export a function that returns it`);
  checkName(value.name, what);
  const { hooks, credentials = [] } = value;
  const members = Object.keys(value).filter((member) => value[member] !== undefined);
  // Checked before "hooks", since a hook placed beside it is often the only one.
  refuseUnknown(members, ['name', 'hooks', 'credentials'], `${what}, without "setup", has an unknown member`);
  if (!isTable(hooks)) throw new PluginProblem(`${what} has no "hooks", an object of functions`);
  refuseUnknown(Object.keys(hooks), HOOKS, `${what}, without "setup", has an unknown hook`);
  const odd = HOOKS.find((name) => Object.hasOwn(hooks, name) && typeof hooks[name] !== 'function');
  if (odd !== undefined) throw new PluginProblem(`the hook "${odd}" must be a function`);
  if (!Array.isArray(credentials) || !credentials.every((name) => typeof name === 'string' && name !== ''))
    throw new PluginProblem('its "credentials" must be a list of header names');
  return value as unknown as SimplePlugin;
}

/** Checks the name of a plugin. @throws PluginProblem */
export function checkName(name: unknown, what: string): void {
  const isName =
    typeof name === 'string' &&
    name.length <= LONGEST_NAME &&
    /^[^\s\p{C}"](?:[^\p{C}\p{Zl}\p{Zp}"]*[^\s\p{C}"])?$/u.test(name);
  if (!isName) throw new PluginProblem(`${what} has no "name", a short text of one line`);
}

/** Checks whether a value is a plain object. Methods of a class cannot be listed, and would be left out silently. */
export function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return isRecord(value) && isPlain(value);
}

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

/** Checks whether an export is a function that makes a plugin of its config. */
export function isFactory(value: unknown): value is (config: unknown) => unknown {
  return typeof value === 'function';
}
