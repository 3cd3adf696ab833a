import { type Exchange, Flights } from './exchange.ts';
import { type GuardOptions, guarded, type PluginFunction } from './guard.ts';
import { Hooks, type Observer, type TapDescription } from './hooks.ts';
import { type Hidden, type StageName, stageNames, stageOf, stages } from './stages.ts';
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
  readonly budget: number | 'none';
  /** Request headers that carry credentials. Preflights name them, and `onHttpRequest` of other plugins does not see them. */
  readonly credentials?: readonly string[] | undefined;
  /** Whether operators' plugins come first at pick, around and `builtinsLast` stages, in any order of registration. */
  readonly isBuiltin?: boolean;
  readonly plugin: Plugin;
}

/** A complete set of plugins, ready to serve. */
export interface PluginSet {
  readonly hooks: Hooks;
  readonly plugins: readonly Registration[];
  /** The functions of each stage, in the order in which they are called. */
  readonly taps: Readonly<Record<StageName, readonly TapDescription[]>>;
  /** Lower-case names of request headers that carry credentials. */
  readonly hidden: ReadonlySet<string>;
}

/** Thrown at the start if two plugins claim the same thing, or one registers for something that does not exist. */
export class RegistrationError extends Error {}

/** Returns the name of a route among the variants of the stage `route`. */
export function routeKey({ method, path }: Pick<Route, 'method' | 'path'>): string {
  return `${method} ${path}`;
}

/**
 * Registers all plugins, built-ins and operators' alike, by the same method. Once sealed, it accepts no more.
 */
export class Registry {
  readonly #options: GuardOptions;
  readonly #hooks: Hooks;
  readonly #registrations: Registration[] = [];
  /** Lower-case names of all plugins' credential headers; complete once every plugin is registered. */
  readonly #hidden = new Set<string>();
  #isSealed = false;

  constructor(options: GuardOptions) {
    this.#hooks = new Hooks(options.observer ?? {});
    this.#options = options;
  }

  /** Taps a plugin's functions, routes included. @throws RegistrationError */
  register(registration: Registration): void {
    const { name, plugin, credentials = [] } = registration;
    if (this.#isSealed) throw new RegistrationError(`plugin "${name}" comes too late: the registry is sealed`);
    for (const header of credentials) this.#hidden.add(header.toLowerCase());
    const { hooks = {}, routes = [], vary } = plugin;
    for (const [stage, entry] of Object.entries(hooks)) this.#addHook(registration, stage, entry);
    for (const route of routes)
      this.#tap(registration, 'route', routeKey(route), (...args) => Reflect.apply(route.handle, route, args));
    if (vary !== undefined) this.#tap(registration, 'vary', '', (_, ...call) => Reflect.apply(vary, plugin, call));
    this.#registrations.push(registration);
  }

  /** Composes the plugins into a set. No plugin can be registered afterwards. */
  seal(): PluginSet {
    this.#isSealed = true;
    this.#hooks.seal();
    const taps = Object.fromEntries(stageNames.map((stage) => [stage, this.#hooks.taps(stage)])) as PluginSet['taps'];
    return { hooks: this.#hooks, plugins: this.#registrations, taps, hidden: this.#hidden };
  }

  #addHook(registration: Registration, stage: string, entry: unknown): void {
    if (!Object.hasOwn(stages, stage) || stageOf(stage as StageName).ownMember)
      throw new RegistrationError(`plugin "${registration.name}": there is no hook "${stage}"`);
    if (entry === undefined) return;
    const { variants } = stageOf(stage as StageName);
    const table = variants === undefined ? { '': entry } : Object(entry);
    for (const [variant, fn] of Object.entries(table))
      this.#tap(
        registration,
        stage as StageName,
        variant,
        (fn as PluginFunction).bind(variants ? table : registration.plugin.hooks),
      );
  }

  /** Built-ins come after operators' plugins at pick and around stages, and where the stage's row says so. */
  #tap(registration: Registration, stage: StageName, variant: string, fn: PluginFunction): void {
    const { name: plugin, budget, isBuiltin: isTrusted = false } = registration;
    const { kind, variants, builtinsLast } = stageOf(stage);
    const rival = variants && this.#hooks.taps(stage).find((tap) => tap.variant === variant);
    if (rival !== undefined) {
      const what = stage === 'route' ? `serve ${variant}` : `provide "${stage}" of "${variant}"`;
      throw new RegistrationError(`plugins "${rival.plugin}" and "${plugin}" both ${what}`);
    }
    const flights = new Flights(this.#hooks.running);
    const hidden = this.#hiddenFrom(registration);
    const tapped = guarded({ stage, plugin, budget, isTrusted, hidden, fn, flights, options: this.#options });
    const isLast = isTrusted && (kind === 'pick' || kind === 'around' || builtinsLast === true);
    this.#hooks.tap(stage, { plugin, variant, budget }, isLast, tapped);
  }

  /** Returns a live view of the headers that a plugin must not see, since others may still be registered. */
  #hiddenFrom({ credentials = [] }: Registration): Hidden {
    const own = new Set(credentials.map((header) => header.toLowerCase()));
    return own.size === 0 ? this.#hidden : { has: (header) => this.#hidden.has(header) && !own.has(header) };
  }
}
