import type { Clock } from './budget.ts';
import type { Exchange } from './exchange.ts';
import { type Guarded, type GuardOptions, guarded } from './guard.ts';
import { Hooks } from './hooks.ts';
import type { Observer } from './observer.ts';
import { isPlain } from './plain-json.ts';
import { type StageName, stageNames, stageOf, stages } from './stages.ts';
import type { Awaitable, Call, HttpResponse, RouteRequest } from './values.ts';

export interface Route {
  readonly method: string;
  /** Path in the router's syntax; `*` matches any. */
  readonly path: string;
  /** Whether the `admit` stage guards it. */
  readonly admit: boolean;
  /** Bytes of a body that are read at most before the handler is called; default none. A longer one is refused with 413. */
  readonly maxBody?: number;
  handle(request: RouteRequest, exchange: Exchange, call: Call): Awaitable<HttpResponse>;
}

/** What the kernel runs of a plugin. */
export interface Plugin {
  /** Functions by stage name; of a stage with variants, a table of them. */
  readonly hooks?: Readonly<Record<string, unknown>> | undefined;
  readonly routes?: readonly Route[] | undefined;
  /** A text by which it varies the answers of a question. */
  vary?(exchange: Exchange, call: Call): Awaitable<string | undefined>;
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
  /** Charges the budget, where that is not the time that passes. */
  readonly clock?: Clock | undefined;
  /** Request headers that carry credentials: named in preflights and hidden from `onHttpRequest` of other plugins. */
  readonly credentials?: readonly string[] | undefined;
  /** Whether others that provide the same are asked first, wherever they were registered. */
  readonly fallback?: boolean;
  /** Modes of it that may run the rest of the pipeline again. */
  readonly repeats?: readonly string[] | undefined;
  readonly plugin: Plugin;
}

/** One function of one plugin at one stage. */
export interface TapDescription {
  readonly plugin: string;
  readonly variant?: string;
  readonly budget: number | 'none';
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

/** A function that is not tapped yet. */
interface Candidate {
  readonly who: Guarded;
  readonly variant: string;
  readonly fallback: boolean;
  readonly fn: (...args: unknown[]) => unknown;
}

/** Milliseconds that a timer can hold. */
const MAX_TIMER = 2_147_483_647;

/** Names a route among the variants of its stage. */
export function routeKey({ method, path }: Pick<Route, 'method' | 'path'>): string {
  return `${method} ${path}`;
}

function lowerCaseCredentials({ credentials = [] }: Registration): readonly string[] {
  return credentials.map((header) => header.toLowerCase());
}

function isStageName(name: string): name is StageName {
  return Object.hasOwn(stages, name);
}

/**
 * Where every plugin, built-in or an operator's, is registered: the same function for all. Once sealed nothing can be
 * added any more.
 */
export class Registry {
  readonly #options: Omit<GuardOptions, 'hidden' | 'protect'>;
  readonly #registrations: Registration[] = [];
  readonly #candidates = new Map<StageName, Candidate[]>();
  #isSealed = false;

  constructor(options: Omit<GuardOptions, 'hidden' | 'protect'>) {
    this.#options = options;
  }

  /** @throws RegistrationError */
  register(registration: Registration): void {
    const { name, budget, plugin } = registration;
    if (name.trim() === '') throw new RegistrationError('a plugin has no name');
    if (budget !== 'none' && !(Number.isInteger(budget) && budget >= 1 && budget <= MAX_TIMER)) {
      throw new RegistrationError(`plugin "${name}": the budget is no time from 1 to ${MAX_TIMER} ms`);
    }
    // Hooks of a class would be left out silently.
    if (!isPlain(plugin.hooks ?? {})) throw new RegistrationError(`plugin "${name}": "hooks" is no plain object`);
    if (this.#isSealed) throw new RegistrationError(`plugin "${name}" comes too late: the registry is sealed`);
    if (this.#registrations.some((other) => other.name === name))
      throw new RegistrationError(`two plugins are named "${name}"`);
    for (const [stage, entry] of Object.entries(plugin.hooks ?? {})) this.#addHook(registration, stage, entry);
    this.#addRoutes(registration);
    this.#registrations.push(registration);
  }

  /** No plugin comes after this. */
  seal(): PluginSet {
    this.#isSealed = true;
    const hidden = new Set(this.#registrations.flatMap(lowerCaseCredentials));
    const hiddenFrom = (plugin: string) => {
      const own = this.#registrations.filter(({ name }) => name === plugin).flatMap(lowerCaseCredentials);
      return new Set([...hidden].filter((header) => !own.includes(header)));
    };
    const hooks = new Hooks(this.#options.observer ?? {});
    const { protect } = this.#options.contracts;
    const tapAll = (stage: StageName) => {
      const candidates = this.#inOrder(stage);
      for (const { who, variant, fn, fallback } of candidates)
        hooks.tap(
          stage,
          variant,
          who.plugin,
          guarded(stage, who, fn, {
            ...this.#options,
            hidden: hiddenFrom(who.plugin),
            protect: fallback ? undefined : protect,
          }),
        );
      return candidates.map(({ who, variant }) => (stageOf(stage).variants ? { ...who, variant } : who));
    };
    const taps = Object.fromEntries(stageNames.map((stage) => [stage, tapAll(stage)])) as unknown as PluginSet['taps'];
    return { hooks, plugins: this.#registrations, taps, hidden };
  }

  /** One after the other, but where one provider answers for all, or all have to agree, those that others may replace come last. */
  #inOrder(stage: StageName): readonly Candidate[] {
    const candidates = this.#candidates.get(stage) ?? [];
    const { kind, unanimous } = stageOf(stage);
    if (kind !== 'pick' && !unanimous) return candidates;
    return [...candidates.filter(({ fallback }) => !fallback), ...candidates.filter(({ fallback }) => fallback)];
  }

  #addHook(registration: Registration, stage: string, entry: unknown): void {
    const { name, plugin } = registration;
    if (!isStageName(stage) || stage === 'route')
      throw new RegistrationError(`plugin "${name}": there is no hook "${stage}"`);
    if (entry === undefined) return;
    if (stageOf(stage).variants === undefined) {
      this.#add(registration, stage, '', entry, plugin.hooks);
      return;
    }
    if (typeof entry !== 'object' || entry === null)
      throw new RegistrationError(`plugin "${name}": "${stage}" takes a table`);
    for (const [variant, fn] of Object.entries(entry)) this.#add(registration, stage, variant, fn, entry);
  }

  #addRoutes(registration: Registration): void {
    const { name, plugin } = registration;
    const routes: unknown = plugin.routes ?? [];
    if (!Array.isArray(routes)) throw new RegistrationError(`plugin "${name}": "routes" is no list`);
    for (const route of routes as readonly Partial<Route>[]) {
      if (typeof route !== 'object' || route === null)
        throw new RegistrationError(`plugin "${name}": a route is no object`);
      const { method, path, handle } = route;
      const key = `${String(method)} ${String(path)}`;
      if (typeof method !== 'string' || typeof path !== 'string')
        throw new RegistrationError(`plugin "${name}": route ${key}: needs a method and a path`);
      this.#add(registration, 'route', key, handle, route);
    }
  }

  #add(registration: Registration, stage: StageName, variant: string, fn: unknown, table: unknown): void {
    const { name: plugin, budget, clock, fallback = false } = registration;
    const others = this.#candidates.get(stage) ?? [];
    const rival = stageOf(stage).variants && others.find((other) => other.variant === variant);
    if (rival) {
      const both = `plugins "${rival.who.plugin}" and "${plugin}" both`;
      throw new RegistrationError(
        stage === 'route' ? `${both} serve ${variant}` : `${both} provide "${stage}" of "${variant}"`,
      );
    }
    if (typeof fn !== 'function') {
      const what = stage === 'route' ? `route ${variant}: has no handler` : `hook "${stage}" is no function`;
      throw new RegistrationError(`plugin "${plugin}": ${what}`);
    }
    const who = clock === undefined ? { plugin, budget } : { plugin, budget, clock };
    this.#candidates.set(stage, [...others, { who, variant, fallback, fn: fn.bind(table) }]);
  }
}
