import { type Budget, DEFAULT_BUDGET_MS } from './charge.ts';
import { type Exchange, Flights, WaitGroup } from './exchange.ts';
import { type GuardOptions, guarded, type PluginFunction, type Tap } from './guard.ts';
import { type Hooks, hooksOf, type Observer, type TapDescription } from './hooks.ts';
import { byStage, type StageName, stages } from './stages.ts';
import type { Awaitable, CallContext, HttpResponse, RouteRequest } from './values.ts';

/** An HTTP method and path that a plugin answers. */
export interface Route {
  readonly method: string;
  /** Path in the router's syntax; `*` matches any path. */
  readonly path: string;
  /** Whether `admit` guards the route. `asked`: it guards the requests that the route makes; overload sheds the route as well. */
  readonly admit: boolean | 'asked';
  /** Most bytes of a body, which is read before the handler is called. A longer one is refused with 413. Default: not read. */
  readonly maxBody?: number;
  handle(request: RouteRequest, exchange: Exchange, call: CallContext): Awaitable<HttpResponse>;
}

/** The part of a plugin that the kernel runs. */
export interface Plugin {
  /** Functions by stage name; for a stage with variants, a table of functions. */
  readonly hooks?: Readonly<Record<string, unknown>> | undefined;
  readonly routes?: readonly Route[] | undefined;
  /** Returns a text by which the plugin keeps the answers to equal questions apart. */
  vary?(exchange: Exchange, call: CallContext): Awaitable<string | undefined>;
  /** Callbacks that measure every request. */
  readonly observe?: Observer | undefined;
  /** Starts timers, pools and workers. Nothing may run before. */
  start?(): void | Promise<void>;
  /** Stops them. @param deadline milliseconds left to finish. */
  stop?(deadline: number): void | Promise<void>;
}

/** A plugin with its name and budget, as it is registered. */
export interface Registration {
  readonly name: string;
  readonly budget: Budget;
  /** Request headers that carry credentials. Preflights name them, and `onHttpRequest` of other plugins does not see them. */
  readonly credentials?: readonly string[] | undefined;
  /** Whether operators' plugins come first at pick, around and `builtinsLast` stages, in any order of registration. */
  readonly isBuiltin?: boolean;
  readonly plugin: Plugin;
}

/** A complete set of plugins, ready to serve. */
export interface PluginSet {
  readonly hooks: Hooks;
  readonly observer: Observer;
  /** Work that a stop waits for. */
  readonly running: WaitGroup;
  readonly plugins: readonly Registration[];
  /** The functions of each stage, in the order in which they are called. */
  readonly taps: Readonly<Record<StageName, readonly TapDescription[]>>;
}

/** Thrown at the start if two plugins claim the same thing, or one registers for something that does not exist. */
export class RegistrationError extends Error {}

/** Returns the name of a route among the variants of the stage `route`. */
export function routeKey({ method, path }: Pick<Route, 'method' | 'path'>): string {
  return `${method} ${path}`;
}

/**
 * Registers plugins, built-ins and operators' alike, in the same way, and composes them into a set.
 * @throws RegistrationError
 */
export function register(plugins: readonly Registration[], options: GuardOptions): PluginSet {
  const running = new WaitGroup();
  const credentials = plugins.flatMap(credentialsOf);
  const all: Tap[] = [];
  for (const registration of plugins) {
    const { name: plugin, isBuiltin = false } = registration;
    const own = credentialsOf(registration);
    const hidden = new Set(credentials.filter((header) => !own.includes(header)));
    for (const [stage, variant, fn] of functionsOf(registration)) {
      const budget =
        registration.budget === 'none' && !stages[stage].unbounded ? DEFAULT_BUDGET_MS : registration.budget;
      const tap = { stage, variant, plugin, budget, isBuiltin, hidden, fn, flights: new Flights(running), options };
      requireUnclaimed(all, tap);
      all.push(tap);
    }
  }
  const ordered = [...all.filter((tap) => !comesLast(tap)), ...all.filter(comesLast)];
  const functions = ordered.map((tap) => ({ ...tap, guarded: guarded(tap) }));
  const { observer = {} } = options;
  const hooks = hooksOf(functions, observer);
  const taps = byStage((stage) => ordered.filter((tap) => tap.stage === stage).map(described));
  return { hooks, observer, running, plugins, taps };
}

function described({ stage, plugin, variant, budget }: Tap): TapDescription {
  return { plugin, ...(stages[stage].variants && { variant }), budget };
}

function credentialsOf({ credentials = [] }: Registration): string[] {
  return credentials.map((header) => header.toLowerCase());
}

/** Yields the functions of a plugin, each with its stage and variant. @throws RegistrationError */
function* functionsOf({ name, plugin }: Registration): Generator<[StageName, variant: string, fn: PluginFunction]> {
  const { hooks = {}, routes = [], vary } = plugin;
  for (const [stage, entry] of Object.entries(hooks)) {
    if (!isHook(stage)) throw new RegistrationError(`plugin "${name}": there is no hook "${stage}"`);
    if (entry === undefined) continue;
    const { variants } = stages[stage];
    const table = variants === undefined ? { '': entry } : Object(entry);
    for (const [variant, fn] of Object.entries<PluginFunction>(table))
      yield [stage, variant, fn.bind(variants ? table : hooks)];
  }
  for (const route of routes) yield ['route', routeKey(route), (...args) => Reflect.apply(route.handle, route, args)];
  if (vary !== undefined) yield ['vary', '', (_, ...call) => Reflect.apply(vary, plugin, call)];
}

function isHook(name: string): name is StageName {
  return Object.hasOwn(stages, name) && !stages[name as StageName].ownMember;
}

/** Checks that no plugin has a function for the same variant already. @throws RegistrationError */
function requireUnclaimed(all: readonly Tap[], { stage, variant, plugin }: Tap): void {
  const rival = stages[stage].variants && all.find((tap) => tap.stage === stage && tap.variant === variant);
  if (rival === undefined) return;
  const what = stage === 'route' ? `serve ${variant}` : `provide "${stage}" of "${variant}"`;
  throw new RegistrationError(`plugins "${rival.plugin}" and "${plugin}" both ${what}`);
}

/** Whether it comes after operators' functions: a built-in's does at pick and around stages, and where the stage's row says so. */
function comesLast({ stage, isBuiltin }: Tap): boolean {
  const { kind, builtinsLast } = stages[stage];
  return isBuiltin && (kind === 'pick' || kind === 'around' || builtinsLast === true);
}
