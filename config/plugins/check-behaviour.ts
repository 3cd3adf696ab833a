import { METHODS } from 'node:http';
import { stageNames, stageOf } from '../../kernel/stages.ts';
import { isPlain, isRecord } from '../../lib/json/value.ts';
import { hint, misspelt } from '../../lib/text/suggest.ts';
import type { Behaviour } from '../../plugins-sdk/define.ts';
import type { Observer, Route, StageName } from '../../plugins-sdk/kernel.ts';
import { PluginProblem, refuseUnknown } from './plugin-problem.ts';

/** Hooks that a plugin with `setup` may have. */
const HOOKS: readonly string[] = stageNames.filter((name) => !stageOf(name).beside);

type Check = (value: unknown) => void;

/** What a plugin does, by member. */
const members: { readonly [M in keyof Required<Behaviour>]: Check } = {
  hooks: checkHooks,
  routes: checkRoutes,
  operations: checkOperations,
  dependencies: checkDependencies,
  observe: checkObserver,
  vary: (value) => requireFunction(value, '"vary"'),
  start: (value) => requireFunction(value, '"start"'),
  stop: (value) => requireFunction(value, '"stop"'),
};

export const BEHAVIOUR: readonly string[] = Object.keys(members);

/**
 * Checks what `setup` returned. A promise is refused, since it would pass for a plugin without hooks.
 * @returns what was made.
 * @throws PluginProblem
 */
export function checkBehaviour(made: Behaviour): Behaviour {
  if (typeof made !== 'object' || made === null || 'then' in made) {
    throw new PluginProblem(`"setup" must return {${BEHAVIOUR.join(', ')}} at once`);
  }
  const stray = Object.keys(made).find((name) => !BEHAVIOUR.includes(name) && HOOKS.includes(name));
  if (stray !== undefined) throw new PluginProblem(`"setup" returned "${stray}", which belongs into "hooks"`);
  refuseUnknown(Object.keys(made), BEHAVIOUR, '"setup" returned an');
  for (const [name, check] of Object.entries(members)) {
    const value: unknown = Reflect.get(made, name);
    if (value !== undefined) check(value);
  }
  return made;
}

/** Says why a plugin cannot have a hook of this name. @throws PluginProblem */
export function refuseHook(name: string, known: readonly string[]): never {
  throw new PluginProblem(`unknown hook "${name}"${hint(name, known, 'known hooks')}`);
}

/** @throws PluginProblem */
export function requireFunction(value: unknown, what: string): void {
  if (typeof value !== 'function') throw new PluginProblem(`${what} must be a function`);
}

/** Whether its members can be listed: methods of a class cannot, and would be left out silently. */
export function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return isRecord(value) && isPlain(value);
}

function checkHooks(hooks: unknown): void {
  if (!isTable(hooks)) throw new PluginProblem('"hooks" must be a plain object of functions');
  for (const [name, hook] of Object.entries(hooks)) {
    if (BEHAVIOUR.includes(name)) throw new PluginProblem(`"hooks" has "${name}", which belongs beside it`);
    if (!isHook(name)) refuseHook(name, HOOKS);
    if (hook !== undefined) checkHook(name, hook);
  }
}

function isHook(name: string): name is StageName {
  return HOOKS.includes(name);
}

function checkHook(name: StageName, hook: unknown): void {
  const { variants } = stageOf(name);
  if (variants === undefined) {
    requireFunction(hook, `the hook "${name}"`);
    return;
  }
  if (!isTable(hook)) throw new PluginProblem(`the hook "${name}" must be an object of functions by ${variants}`);
  for (const [variant, fn] of Object.entries(hook)) requireFunction(fn, `the hook "${name}" of "${variant}"`);
}

function checkOperations(operations: unknown): void {
  if (!isTable(operations)) throw new PluginProblem('"operations" must be a plain object of functions');
  for (const [name, run] of Object.entries(operations)) requireFunction(run, `the operation "${name}"`);
}

const observers: { readonly [M in keyof Required<Observer>]: true } = { stage: true, call: true, response: true };

function checkObserver(observe: unknown): void {
  const functions = Object.entries(Object(observe)).filter(([, member]) => typeof member === 'function');
  refuseUnknown(
    functions.map(([name]) => name),
    Object.keys(observers),
    '"observe" has an',
  );
}

function checkDependencies(dependencies: unknown): void {
  if (!Array.isArray(dependencies)) throw new PluginProblem('"dependencies" is no list');
  for (const each of dependencies) {
    if (!isRecord(each) || typeof each.name !== 'string') throw new PluginProblem('a dependency has no "name"');
    for (const member of ['isAvailable', 'isNeeded'])
      requireFunction(each[member], `"${member}" of the dependency "${each.name}"`);
  }
}

const routeMembers: { readonly [M in keyof Required<Route>]: true } = {
  method: true,
  path: true,
  admit: true,
  maxBody: true,
  handle: true,
};

function checkRoutes(routes: unknown): void {
  if (!Array.isArray(routes)) throw new PluginProblem('"routes" is no list');
  for (const route of routes) checkRoute(route);
}

/** @throws PluginProblem for a route that HTTP cannot serve. */
function checkRoute(route: unknown): void {
  if (!isRecord(route)) throw new PluginProblem('a route is no object');
  const { method, path, admit, maxBody = 0, handle } = route;
  const fail = (why: string) => new PluginProblem(`route ${String(method)} ${String(path)}: ${why}`);
  const odd = misspelt(route, Object.keys(routeMembers));
  if (odd !== undefined) throw fail(`unknown member "${odd.name}", did you mean "${odd.meant}"?`);
  if (typeof method !== 'string' || typeof path !== 'string') throw fail('needs a method and a path');
  if (path !== '*' && !path.startsWith('/')) throw fail('the path must start with a slash, or be *');
  if (!METHODS.includes(method.toUpperCase())) throw fail('there is no such method');
  if (typeof handle !== 'function') throw fail('has no handler');
  if (typeof admit !== 'boolean' && admit !== 'asked') throw fail('"admit" must be true, false or "asked"');
  if (typeof maxBody !== 'number' || !Number.isInteger(maxBody) || maxBody < 0)
    throw fail('"maxBody" must be a number of bytes');
}
