import { type Exchange, Flights } from './exchange.ts';
import { type GuardOptions, guarded, type PluginFunction } from './guard.ts';
import { Hooks, type Observer, type TapDescription } from './hooks.ts';
import { type Hidden, type StageName, stageNames, stageOf, stages } from './stages.ts';
import type { Awaitable, CallContext, HttpResponse, RouteRequest } from './values.ts';

/** A path that a plugin answers. */
export interface Route {
  readonly method: string;
  /** Path in the router's syntax; `*` matches any. */
  readonly path: string;
  /** Whether the `admit` stage guards it. `asked`: it guards what the route asks for; overload sheds the route as well. */
  readonly admit: boolean | 'asked';
  /** Bytes of a body that are read at most before the handler is called; default none. A longer one is refused with 413. */
  readonly maxBody?: number;
  handle(request: RouteRequest, exchange: Exchange, call: CallContext): Awaitable<HttpResponse>;
}

/** What the kernel runs of a plugin. */
export interface Plugin {
  /** Functions by stage name; of a stage with variants, a table of them. */
  readonly hooks?: Readonly<Record<string, unknown>> | undefined;
  readonly routes?: readonly Route[] | undefined;
  /** A text by which it varies the answers of a question. */
  vary?(exchange: Exchange, call: CallContext): Awaitable<string | undefined>;
  /** Told of what happens in every request. */
  readonly observe?: Observer | undefined;
  /** Timers, pools and workers begin here: nothing runs before. */
  start?(): void | Promise<void>;
  /** @param deadline milliseconds that are left for finishing. */
  stop?(deadline: number): void | Promise<void>;
}

export interface Registration {
  readonly name: string;
  readonly budget: number | 'none';
  /** Request headers that carry credentials: named in preflights and hidden from `onHttpRequest` of other plugins. */
  readonly credentials?: readonly string[] | undefined;
  /** Whether other providers are asked first, in any order of registration. */
  readonly isBuiltin?: boolean;
  readonly plugin: Plugin;
}

/** A complete set of plugins, ready to serve. */
export interface PluginSet {
  readonly hooks: Hooks;
  readonly plugins: readonly Registration[];
  /** Who is asked at each stage, in order. */
  readonly taps: Readonly<Record<StageName, readonly TapDescription[]>>;
  /** Lower-case names of request headers that carry credentials. */
  readonly hidden: ReadonlySet<string>;
}

/** A doubt at start-up: two plugins want the same thing, or one wants what does not exist. */
export class RegistrationError extends Error {}

/** Names a route among the variants of its stage. */
export function routeKey({ method, path }: Pick<Route, 'method' | 'path'>): string {
  return `${method} ${path}`;
}

/**
 * Where every plugin, built-in or an operator's, is registered: the same function for all. Once sealed nothing can be
 * added any more.
 */
export class Registry {
  readonly #options: GuardOptions;
  readonly #hooks: Hooks;
  readonly #registrations: Registration[] = [];
  /** Complete once every plugin is registered. */
  readonly #hidden = new Set<string>();
  #isSealed = false;

  constructor(options: GuardOptions) {
    this.#hooks = new Hooks(options.observer ?? {});
    this.#options = options;
  }

  /** @throws RegistrationError */
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

  /** No plugin comes after this. */
  seal(): PluginSet {
    this.#isSealed = true;
    this.#hooks.seal();
    const taps = Object.fromEntries(stageNames.map((stage) => [stage, this.#hooks.taps(stage)])) as PluginSet['taps'];
    return { hooks: this.#hooks, plugins: this.#registrations, taps, hidden: this.#hidden };
  }

  #addHook(registration: Registration, stage: string, entry: unknown): void {
    if (!Object.hasOwn(stages, stage) || stageOf(stage as StageName).beside)
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

  /** Others may yet be registered. */
  #hiddenFrom({ credentials = [] }: Registration): Hidden {
    const own = new Set(credentials.map((header) => header.toLowerCase()));
    return own.size === 0 ? this.#hidden : { has: (header) => this.#hidden.has(header) && !own.has(header) };
  }
}
