import { stageNames, stageOf, stages } from '../../kernel/stages.ts';
import { LONGEST_TIMER } from '../../lib/time/timer.ts';
import type { ConfigKey } from '../../plugins-sdk/config-key.ts';
import { type Definition, type EndpointKeys, identityParts, type SimplePlugin } from '../../plugins-sdk/define.ts';
import { publicHooks } from '../../plugins-sdk/hooks/public-hooks.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { BEHAVIOUR, isTable, refuseHook, requireFunction } from './check-behaviour.ts';
import { configKeysOf } from './endpoint-keys.ts';
import { PluginProblem, refuseUnknown } from './plugin-problem.ts';

export { checkBehaviour } from './check-behaviour.ts';

const HOOKS: readonly string[] = Object.keys(publicHooks);
const LEVELS = new Set<unknown>(['root', 'server', 'settings', 'api', 'endpoint', 'apiOrEndpoint']);
const LONGEST_NAME = 100;
const SIMPLE = ['name', 'hooks', 'credentials'];

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
  if (value instanceof Promise) throw new PluginProblem(`${what} is a promise: export a function that returns it`);
  checkName(value.name, what);
  const { hooks, credentials } = value;
  // Before the hooks, since a hook that stands beside them is often the only one.
  for (const member of Object.keys(value)) if (value[member] !== undefined) checkSimpleMember(member, what);
  if (!isTable(hooks)) throw new PluginProblem(`${what} has no "hooks", an object of functions`);
  checkMember('credentials', credentials);
  for (const [stage, hook] of Object.entries(hooks)) checkHook(stage, hook);
}

function checkSimpleMember(member: string, what: string): void {
  if (FULL_ONLY.includes(member)) throw new PluginProblem(`${what} has "${member}", which needs a plugin with "setup"`);
  if (HOOKS.includes(member)) throw new PluginProblem(`${what} has "${member}", which belongs into "hooks"`);
  refuseUnknown([member], SIMPLE, `${what} has an`);
}

function checkHook(stage: string, hook: unknown): void {
  if (Object.hasOwn(stages, stage) && !HOOKS.includes(stage)) {
    throw new PluginProblem(`the hook "${stage}" needs a plugin with "setup"`);
  }
  if (!HOOKS.includes(stage)) refuseHook(stage, HOOKS);
  requireFunction(hook, `the hook "${stage}"`);
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

type Test = (value: unknown) => boolean;
type Check = readonly [isValid: Test, expected: string];

const listOf = (isItem: Test) => (value: unknown) => Array.isArray(value) && value.every((item) => isItem(item));
const tableOf = (isMember: Test) => (value: unknown) =>
  isRecord(value) && Object.values(value).every((member) => isMember(member));
const isTexts = listOf((item) => typeof item === 'string' && item !== '');
const aFunction: Check = [isFunction, 'a function'];

/** Every member of a definition, and what it must be; `name` has a check of its own. */
const memberChecks: { readonly [M in keyof Required<Definition>]: Check } = {
  name: [() => true, ''],
  budget: [(value) => isFunction(value) || isBudget(value), `"none" or whole milliseconds from 1 to ${LONGEST_TIMER}`],
  required: [(value) => typeof value === 'boolean', 'true or false'],
  changesAnswers: [(value) => typeof value === 'boolean', 'true or false'],
  keys: [listOf(isConfigKey), 'a list of config keys'],
  // Whoever reads the block against it says what is wrong with it.
  configSchema: [() => true, ''],
  auth: [tableOf(isRecord), 'an object of schemas by auth type'],
  modes: [isTexts, 'a list of names'],
  credentials: [isTexts, 'a list of header names'],
  exposes: [isTexts, 'a list of header names'],
  signers: [tableOf(isSignerType), 'an object of {schema, open} by type'],
  engines: [tableOf(isEngineType), 'an object of {schema, processes, timeout, open} by type'],
  requiresSharedState: [tableOf(isTexts), 'an object with "auth" or "modes", lists of names'],
  identity: [tableOf(isFunction), 'an object of functions'],
  check: aFunction,
  recommend: aFunction,
  signerAddress: aFunction,
  isAnnounced: aFunction,
  behindProxy: aFunction,
  openapi: aFunction,
  setup: aFunction,
};
const MEMBERS = Object.keys(memberChecks) as (keyof Definition)[];

/** What only a plugin with `setup` can have. */
const FULL_ONLY = [...MEMBERS, ...BEHAVIOUR].filter((member) => !SIMPLE.includes(member));

/** @throws PluginProblem when a member of a plugin with `setup` is of the wrong type, or none that there is. */
export function checkDefinition(definition: Definition, what = 'the default export'): void {
  checkName(definition.name, what);
  refuseUnknown(Object.keys(definition), MEMBERS, `${what} has an`);
  for (const name of MEMBERS) checkMember(name, Reflect.get(definition, name));
  refuseUnknown(Object.keys(definition.identity ?? {}), identityParts, 'its "identity" has an');
  const shared = Object.keys(definition.requiresSharedState ?? {});
  refuseUnknown(shared, ['auth', 'modes'], 'its "requiresSharedState" has an');
}

/** @throws PluginProblem for a value that this member of a definition cannot have. */
export function checkMember(name: keyof Definition, value: unknown): void {
  const [isValid, expected] = memberChecks[name];
  if (value !== undefined && !isValid(value)) throw new PluginProblem(`its "${name}" must be ${expected}`);
}

/** Exports of the file that only a plugin without `setup` has. @throws PluginProblem */
export function refuseIgnored(
  exports: { readonly configSchema: unknown; readonly keys: unknown },
  plugin: Definition,
): void {
  for (const [name, value] of Object.entries(exports)) {
    if (value !== undefined && Reflect.get(plugin, name) === undefined)
      throw new PluginProblem(
        `the export "${name}" is for plugins without "setup": make it a member of the definition`,
      );
  }
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}

function isBudget(value: unknown): boolean {
  return (
    value === 'none' || (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= LONGEST_TIMER)
  );
}

function isEngineType(value: unknown): boolean {
  if (!isRecord(value) || !isRecord(value.schema) || !isFunction(value.open)) return false;
  const { processes, timeout = 1 } = value;
  // What others share may be far away, and hang.
  const isBounded = typeof timeout === 'number' ? timeout > 0 : timeout === 'none' && processes === 'one';
  return isBounded && (processes === 'one' || processes === 'many');
}

function isSignerType(value: unknown): boolean {
  return isRecord(value) && isRecord(value.schema) && isFunction(value.open);
}

function isConfigKey(value: unknown): boolean {
  if (!isRecord(value) || !LEVELS.has(value.level) || !isRecord(value.schema)) return false;
  return typeof value.path === 'string' && /^[\w-]+(?:\.[\w-]+)*$/.test(value.path);
}

const SIGNING = stageNames.filter((stage) => stageOf(stage).signs);

/** @returns what operators are told of a plugin that can change what gets signed, or sent as signed; nothing of other ones. */
export function signingWarning(plugin: string, hooks: object): string | undefined {
  const found = SIGNING.filter((name) => Reflect.get(hooks, name) !== undefined);
  return found.length === 0 ? undefined : `plugin "${plugin}" can change what gets signed (${found.join(', ')})`;
}
