import { METHODS } from 'node:http';
import { type TSchema, Type } from 'typebox';
import type { Observer } from '../../kernel/hooks.ts';
import { stageNames, stages } from '../../kernel/stages.ts';
import type { Endpoint } from '../../kernel/values.ts';
import { LONGEST_TIMER } from '../../lib/time.ts';
import { type Behaviour, type Definition, identityParts } from '../../plugins-sdk/define.ts';
import { closedObject } from '../../plugins-sdk/schema/close.ts';
import { explain } from '../../plugins-sdk/schema/explain.ts';
import { checkTypes } from '../../plugins-sdk/schema/types.ts';
import type { Services } from '../../plugins-sdk/services.ts';
import { findingLine } from '../findings.ts';
import { PluginProblem, refuseUnknown } from './plugin-problem.ts';
import { checkName, isTable } from './simple-plugin.ts';

/** A schema for each member. */
type Members<T> = { readonly [M in keyof Required<T>]: TSchema };

const aFunction = Type.Function([], Type.Unknown());
const aSchema = Type.Object({});
const texts = Type.Array(Type.String({ minLength: 1 }));
const tableOf = (member: TSchema) =>
  Type.Refine(Type.Record(Type.String(), member), isTable, () => 'must be a plain object');
const someOf = (members: Readonly<Record<string, TSchema>>) =>
  closedObject(Object.fromEntries(Object.entries(members).map(([name, schema]) => [name, Type.Optional(schema)])));
const opened = { schema: aSchema, open: aFunction };
const more = Type.Number({ exclusiveMinimum: 0 });
const engine = Type.Object({ ...opened, timeout: Type.Optional(more) });

/** The schema of a `budget` function's result. It may exceed the longest timer: a built-in's budget can exceed any timeout. */
const BUDGET = Type.Union([Type.Literal('none'), more]);

/** The schema of each member of a plugin with `setup`. */
const definition: Members<Definition> = {
  // `name` and `configSchema` have checks of their own.
  name: Type.Unknown(),
  configSchema: Type.Unknown(),
  budget: Type.Union([Type.Literal('none'), Type.Integer({ minimum: 1, maximum: LONGEST_TIMER }), aFunction]),
  required: Type.Boolean(),
  changesAnswers: Type.Boolean(),
  keys: Type.Array(
    Type.Object({
      level: Type.Enum(['root', 'server', 'settings', 'api', 'endpoint', 'apiOrEndpoint']),
      path: Type.String({ pattern: '^[\\w-]+(?:\\.[\\w-]+)*$', description: 'names with dots between them' }),
      schema: aSchema,
    }),
  ),
  auth: tableOf(aSchema),
  modes: texts,
  credentials: texts,
  exposes: texts,
  signers: tableOf(Type.Object(opened)),
  engines: tableOf(engine),
  requiresSharedState: someOf({ auth: texts, modes: texts }),
  identity: someOf(Object.fromEntries(identityParts.map((part) => [part, aFunction]))),
  check: aFunction,
  recommend: aFunction,
  signerAddress: aFunction,
  isAnnounced: aFunction,
  behindProxy: aFunction,
  openapi: aFunction,
  setup: aFunction,
};

const hooks = Object.fromEntries(
  stageNames
    .filter((name) => !stages[name].ownMember)
    .map((name): [string, TSchema] => [name, stages[name].variants === undefined ? aFunction : tableOf(aFunction)]),
);
const observer: Members<Observer> = { stage: aFunction, call: aFunction, response: aFunction };

const route = closedObject({
  method: Type.Refine(
    Type.String(),
    (method) => METHODS.includes(method.toUpperCase()),
    () => 'there is no such method',
  ),
  path: Type.String({ pattern: '^(?:/|\\*$)', description: 'a path that begins with a slash, or *' }),
  admit: Type.Union([Type.Boolean(), Type.Literal('asked')]),
  maxBody: Type.Optional(Type.Integer({ minimum: 0 })),
  handle: aFunction,
});

/** The schema of each member of what `setup` returns. */
const behaviour: Members<Behaviour> = {
  hooks: someOf(hooks),
  routes: Type.Array(route),
  operations: tableOf(aFunction),
  dependencies: Type.Array(Type.Object({ name: Type.String(), isAvailable: aFunction, isNeeded: aFunction })),
  // An observer may have other members, if these are not functions.
  observe: Type.Partial(Type.Object(observer)),
  vary: aFunction,
  start: aFunction,
  stop: aFunction,
};

const [DEFINITION, BEHAVIOUR] = [someOf(definition), someOf(behaviour)];

/** Checks a value by a schema. @throws PluginProblem that names the first member of the wrong shape. */
function checkShape(schema: TSchema, value: unknown, what: string): void {
  const [wrong] = explain(schema, value, '');
  if (wrong !== undefined) throw new PluginProblem(`${what}: ${findingLine(wrong)}`);
}

/** Returns the members that are not `undefined`, as a conditional expression may have left them. */
function present(value: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined));
}

/**
 * Checks a plugin with `setup`.
 * @throws PluginProblem when a member is of the wrong type, or unknown; SyntaxError when one of its schemas is wrong.
 */
export function checkDefinition(given: Definition, what = 'the default export'): void {
  checkName(given.name, what);
  checkShape(DEFINITION, present(given), what);
  const { keys = [], auth = {}, signers = {}, engines = {} } = given;
  checkTypes(Object.values(auth));
  for (const { schema } of [...keys, ...Object.values(signers), ...Object.values(engines)]) checkTypes(schema);
}

/** Returns a plugin's budget in a config. @throws PluginProblem for another result of its function, and what that throws */
export function budgetIn(
  config: Services['config'],
  endpoints: readonly Endpoint[],
  budget: NonNullable<Definition['budget']>,
): number | 'none' {
  if (typeof budget !== 'function') return budget;
  const result = budget(config, endpoints);
  checkShape(BUDGET, result, 'what "budget" returned');
  return result;
}

/** Checks one member of a definition. @throws PluginProblem for a value that it cannot have. */
export function checkMember(name: keyof Definition, value: unknown): void {
  checkShape(definition[name], value, name);
}

/**
 * Checks what `setup` returned. A promise is refused, since it would pass for a plugin without hooks.
 * @returns the same value.
 * @throws PluginProblem
 */
export function checkBehaviour(made: Behaviour): Behaviour {
  if (typeof made !== 'object' || made === null || 'then' in made)
    throw new PluginProblem(`"setup" must return {${Object.keys(behaviour).join(', ')}} at once`);
  const members = present(made);
  const { hooks: given = {}, observe } = members;
  if (!isTable(given)) throw new PluginProblem('"hooks" must be a plain object of functions');
  checkShape(BEHAVIOUR, { ...members, hooks: present(given) }, 'what "setup" returned');
  const observing = Object.keys(Object(observe)).filter(
    (name) => typeof Reflect.get(Object(observe), name) === 'function',
  );
  refuseUnknown(observing, Object.keys(observer), '"observe" has an unknown member');
  return made;
}

const SIGNING = stageNames.filter((stage) => stages[stage].alters);

/** Returns the warning about a plugin that can change what gets signed, or sent as signed; `undefined` for other plugins. */
export function signingWarning(plugin: string, taps: object): string | undefined {
  const found = SIGNING.filter((name) => Reflect.get(taps, name) !== undefined);
  return found.length === 0 ? undefined : `plugin "${plugin}" can change what gets signed (${found.join(', ')})`;
}
