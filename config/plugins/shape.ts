import { stageNames, stageOf, stages } from '../../kernel/stages.ts';
import type { ConfigKey, Definition, EndpointKeys, SimplePlugin } from '../../plugins-sdk/define.ts';
import { configKeysOf } from '../../plugins-sdk/endpoint-keys.ts';
import { publicHooks } from '../../plugins-sdk/public-hooks.ts';
import { hint } from '../../plugins-sdk/suggest.ts';
import { isRecord } from '../path.ts';
import { PluginProblem } from './problem.ts';

const HOOKS: readonly string[] = Object.keys(publicHooks);
const LEVELS = new Set<unknown>(['root', 'server', 'settings', 'api', 'endpoint', 'shared']);
const LONGEST_NAME = 100;
/** What only a plugin with `setup` can have. */
const FULL_ONLY = [
  'keys',
  'auth',
  'modes',
  'credentials',
  'identity',
  'check',
  'openapi',
  'behindProxy',
  'budget',
  'routes',
  'observe',
  'start',
  'stop',
];

/** @throws PluginProblem unless the value is `{name, hooks}`. */
export function simplePlugin(value: unknown, what: string): SimplePlugin {
  assertSimplePlugin(value, what);
  return value;
}

/** The config keys of a simple plugin, by what its file exports as `keys`. @throws PluginProblem */
export function simpleKeys(exported: unknown = {}): readonly ConfigKey[] {
  if (!isEndpointKeys(exported)) throw new PluginProblem('its "keys" must be an object of schemas by name');
  return configKeysOf(exported);
}

function isEndpointKeys(value: unknown): value is EndpointKeys {
  return isRecord(value) && Object.entries(value).every(([name, schema]) => /^[\w-]+$/.test(name) && isRecord(schema));
}

function assertSimplePlugin(value: unknown, what: string): asserts value is SimplePlugin {
  if (!isRecord(value)) throw new PluginProblem(`${what} must be {name, hooks}`);
  checkName(value.name, what);
  const { hooks } = value;
  if (!isRecord(hooks)) throw new PluginProblem(`${what} has no "hooks", an object of functions`);
  const surplus = FULL_ONLY.find((key) => value[key] !== undefined);
  if (surplus !== undefined) throw new PluginProblem(`${what} has "${surplus}", which needs a plugin with "setup"`);
  for (const [stage, hook] of Object.entries(hooks)) checkHook(stage, hook);
}

function checkHook(stage: string, hook: unknown): void {
  if (Object.hasOwn(stages, stage) && !HOOKS.includes(stage)) {
    throw new PluginProblem(`the hook "${stage}" needs a plugin with "setup"`);
  }
  if (!HOOKS.includes(stage)) throw new PluginProblem(`unknown hook "${stage}"${hint(stage, HOOKS, 'known hooks')}`);
  if (typeof hook !== 'function') throw new PluginProblem(`the hook "${stage}" must be a function`);
}

function checkName(name: unknown, what: string): void {
  const valid =
    typeof name === 'string' &&
    name.length <= LONGEST_NAME &&
    /^[^\s\p{C}"](?:[^\p{C}\p{Zl}\p{Zp}"]*[^\s\p{C}"])?$/u.test(name);
  if (!valid) throw new PluginProblem(`${what} has no "name", a short text of one line`);
}

export function isDefinition(value: unknown): value is Definition {
  return isRecord(value) && typeof value.setup === 'function';
}

const memberChecks: Readonly<Record<string, readonly [(value: unknown) => boolean, string]>> = {
  budget: [(value) => value === 'none' || (typeof value === 'number' && value > 0), '"none" or positive milliseconds'],
  required: [(value) => typeof value === 'boolean', 'true or false'],
  keys: [(value) => Array.isArray(value) && value.every(isConfigKey), 'a list of config keys'],
  auth: [(value) => isRecord(value) && Object.values(value).every(isRecord), 'an object of schemas by auth type'],
  modes: [isTexts, 'a list of names'],
  credentials: [isTexts, 'a list of header names'],
  identity: [(value) => isRecord(value) && Object.values(value).every(isFunction), 'an object of functions'],
  check: [isFunction, 'a function'],
  openapi: [isFunction, 'a function'],
  behindProxy: [isFunction, 'a function'],
};

/** @throws PluginProblem when a member of a plugin with `setup` is of the wrong type. */
export function checkDefinition(definition: Definition): void {
  checkName(definition.name, 'the default export');
  for (const [name, [isValid, expected]] of Object.entries(memberChecks)) {
    const member: unknown = Reflect.get(definition, name);
    if (member !== undefined && !isValid(member)) throw new PluginProblem(`its "${name}" must be ${expected}`);
  }
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'string' && item !== '');
}

function isConfigKey(value: unknown): boolean {
  if (!isRecord(value) || !LEVELS.has(value.level) || !isRecord(value.schema)) return false;
  return typeof value.path === 'string' && /^[\w-]+(?:\.[\w-]+)*$/.test(value.path);
}

const SIGNING = stageNames.filter((stage) => stageOf(stage).signs);

/** The hooks with which a plugin can change what gets signed or sent as signed, in the order in which they run. */
export function signingHooks(hooks: object): string[] {
  return SIGNING.filter((name) => Reflect.get(hooks, name) !== undefined);
}
