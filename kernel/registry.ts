import type { Exchange } from './exchange.ts';
import { type Guarded, guarded, type House } from './guard.ts';
import type { Call } from './ledger.ts';
import { type Observer, observeAll } from './observer.ts';
import { createHooks, failure, type Hooks, hasVariants, hookAt, type Reply, type StageName } from './stages.ts';

export interface Route {
  readonly method: string;
  /** Path in the router's syntax; `*` matches any. */
  readonly path: string;
  /** Whether the `admit` stage guards it. */
  readonly admit: boolean;
  /** @param params values of the path's parameters, for the route alone: they may be bearer secrets. */
  handle(exchange: Exchange, call: Call, params: Readonly<Record<string, string>>): Reply | Promise<Reply>;
}

/** What the kernel runs of a plugin. */
export interface Plugin {
  /** Functions by stage name; of a stage with variants, a table of them. */
  readonly hooks?: Readonly<Record<string, unknown>> | undefined;
  readonly routes?: readonly Route[] | undefined;
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
  /** Request headers that carry credentials: named in preflights and hidden from `onHttpRequest`. */
  readonly credentials?: readonly string[] | undefined;
  readonly plugin: Plugin;
}

/** One function of one plugin at one stage, for `describe()`. */
export interface TapDescription {
  readonly plugin: string;
  readonly variant?: string;
  readonly budget: number | 'none';
}

/** All that plugins do in a service: what an audit starts from. */
export interface Description {
  readonly stages: readonly StageDescription[];
  readonly routes: readonly (Pick<Route, 'method' | 'path' | 'admit'> & Pick<TapDescription, 'plugin' | 'budget'>)[];
  /** Plugins that are told of everything. */
  readonly observers: readonly string[];
}

export interface StageDescription {
  readonly stage: StageName;
  readonly failure: 'closed' | 'open';
  readonly taps: readonly TapDescription[];
}

/** A doubt at start-up: two plugins want the same thing, or one wants what does not exist. */
export class RegistrationError extends Error {}

function isStageName(hooks: Hooks, name: string): name is StageName {
  return Object.hasOwn(hooks, name);
}

/** Milliseconds that a timer can hold. */
const MAX_TIMER = 2_147_483_647;

/** Two routes whose patterns differ in the names of their parameters only are the same. */
function routeClaim(method: string, path: string): string {
  return `${method.toUpperCase()} ${path.replace(/:\w+/g, ':')}`;
}

/** Methods of a class are not its instances' own: they would be left out silently. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Stages of which only one plugin may be the provider (of one variant, where they have variants). */
const exclusive: ReadonlySet<StageName> = new Set(['authenticate', 'deliver', 'callApi', 'sign']);

/**
 * Where every plugin, built-in or an operator's, is registered: the same function for all. Once sealed nothing can be
 * added any more.
 */
export class Registry {
  readonly #hooks = createHooks();
  readonly #registrations: Registration[] = [];
  readonly #hidden = new Set<string>();
  /** Routes by their owner; the pipeline's own is the kernel's. */
  readonly #claims = new Map(['/endpoints/:id', '*'].map((path) => [routeClaim('POST', path), 'kernel']));
  readonly #described = new Map<StageName, TapDescription[]>();
  readonly #house: House;
  #observer: Observer | undefined;

  constructor(house: Omit<House, 'hidden' | 'observer'>) {
    const observer = () => this.#observer ?? {};
    this.#house = {
      ...house,
      hidden: this.#hidden,
      get observer() {
        return observer();
      },
    };
  }

  /** @throws RegistrationError */
  register(registration: Registration): void {
    const { name, budget, plugin, credentials = [] } = registration;
    if (name.trim() === '') throw new RegistrationError('a plugin has no name');
    if (budget !== 'none' && !(Number.isInteger(budget) && budget >= 1 && budget <= MAX_TIMER)) {
      throw new RegistrationError(`plugin "${name}": the budget is no time from 1 to ${MAX_TIMER} ms`);
    }
    if (!isPlain(plugin.hooks ?? {})) throw new RegistrationError(`plugin "${name}": "hooks" is no plain object`);
    if (this.#observer !== undefined)
      throw new RegistrationError(`plugin "${name}" comes too late: the registry is sealed`);
    if (this.#registrations.some((other) => other.name === name))
      throw new RegistrationError(`two plugins are named "${name}"`);
    this.#claimRoutes(name, plugin.routes ?? []);
    for (const header of credentials) this.#hidden.add(header.toLowerCase());
    for (const [stage, tap] of Object.entries(plugin.hooks ?? {})) this.#tap(registration, stage, tap);
    this.#registrations.push(registration);
  }

  /** No plugin comes after this. */
  seal(): Sealed {
    this.#observer = this.#observeAll();
    return {
      hooks: this.#hooks,
      plugins: this.#registrations,
      house: this.#house,
      ...this.#describe(),
    };
  }

  #describe(): Description {
    return {
      stages: Object.keys(this.#hooks).map((name) => {
        const stage = name as StageName;
        return { stage, failure: failure[stage], taps: this.#described.get(stage) ?? [] };
      }),
      routes: this.#registrations.flatMap(({ name, budget, plugin: { routes = [] } }) =>
        routes.map(({ method, path, admit }) => ({ method, path, admit, plugin: name, budget })),
      ),
      observers: this.#registrations.filter(({ plugin }) => plugin.observe !== undefined).map(({ name }) => name),
    };
  }

  #observeAll(): Observer {
    return observeAll(
      this.#registrations.flatMap(({ name, plugin: { observe } }) =>
        observe === undefined ? [] : [{ name, observe }],
      ),
      (plugin, error) => this.#house.complain({ plugin, stage: 'observe', requestId: '', error }),
    );
  }

  #claimRoutes(name: string, routes: unknown): void {
    if (!Array.isArray(routes)) throw new RegistrationError(`plugin "${name}": "routes" is no list`);
    for (const route of routes as readonly unknown[]) {
      if (typeof route !== 'object' || route === null)
        throw new RegistrationError(`plugin "${name}": a route is no object`);
      const { method, path, admit, handle } = route as Partial<Route>;
      const fail = (why: string) =>
        new RegistrationError(`plugin "${name}": route ${String(method)} ${String(path)}: ${why}`);
      if (typeof method !== 'string' || typeof path !== 'string') throw fail('needs a method and a path');
      const claim = routeClaim(method, path);
      const owner = this.#claims.get(claim);
      if (owner !== undefined)
        throw new RegistrationError(`plugins "${owner}" and "${name}" both serve ${method} ${path}`);
      if (path !== '*' && !path.startsWith('/')) throw fail('the path must start with a slash, or be *');
      if (typeof handle !== 'function') throw fail('has no handler');
      if (typeof admit !== 'boolean') throw fail('"admit" must be true or false');
      this.#claims.set(claim, name);
    }
  }

  #tap(registration: Registration, stage: string, tap: unknown): void {
    const { name } = registration;
    if (!isStageName(this.#hooks, stage)) throw new RegistrationError(`plugin "${name}": there is no hook "${stage}"`);
    if (tap === undefined) return;
    if (!hasVariants(stage)) {
      this.#attach(registration, stage, tap, registration.plugin.hooks);
      return;
    }
    if (typeof tap !== 'object' || tap === null)
      throw new RegistrationError(`plugin "${name}": "${stage}" takes a table`);
    for (const [variant, fn] of Object.entries(tap)) this.#attach(registration, stage, fn, tap, variant);
  }

  #attach(registration: Registration, stage: StageName, fn: unknown, table: unknown, variant?: string): void {
    const { name: plugin, budget } = registration;
    if (typeof fn !== 'function') throw new RegistrationError(`plugin "${plugin}": hook "${stage}" is no function`);
    const others = this.#described.get(stage) ?? [];
    const rival = others.find((other) => other.variant === variant);
    if (rival && exclusive.has(stage)) {
      const what = variant === undefined ? `"${stage}"` : `"${stage}" of "${variant}"`;
      throw new RegistrationError(`plugins "${rival.plugin}" and "${plugin}" both provide ${what}`);
    }
    const tap: Guarded = { plugin, budget };
    hookAt(this.#hooks, stage, variant).tapAsync(plugin, guarded(stage, tap, fn.bind(table), this.#house));
    this.#described.set(stage, [...others, variant === undefined ? tap : { ...tap, variant }]);
  }
}

/** A complete set of plugins, ready to serve. */
export interface Sealed extends Description {
  readonly hooks: Hooks;
  readonly plugins: readonly Registration[];
  readonly house: House;
}
