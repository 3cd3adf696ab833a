import type { Exchange } from './exchange.ts';
import { type Guarded, guarded, type House } from './guard.ts';
import type { Call } from './ledger.ts';
import { createHooks, failure, type Hooks, hasVariants, hookAt, type Reply, type StageName } from './stages.ts';

/** A place in the config file that a plugin owns. */
export interface OwnedKey {
  /** `shared`: allowed on an API and, overriding it, on an endpoint. */
  readonly level: 'root' | 'server' | 'settings' | 'api' | 'endpoint' | 'shared';
  /** Dotted path below the level. */
  readonly path: string;
  /** JSON Schema of the value. */
  readonly schema: object;
}

export interface Route {
  readonly method: string;
  /** Path in the router's syntax; `*` matches any. */
  readonly path: string;
  /** Whether the `admit` stage guards it. */
  readonly admit: boolean;
  handle(exchange: Exchange, call: Call): Reply | Promise<Reply>;
}

/** What the kernel runs of a plugin. */
export interface Plugin {
  /** Functions by stage name; of a stage with variants, a table of them. */
  readonly hooks?: Readonly<Record<string, unknown>> | undefined;
  readonly routes?: readonly Route[] | undefined;
  /** Timers, pools and workers begin here: nothing runs before. */
  start?(): void | Promise<void>;
  /** @param deadline milliseconds that are left for finishing. */
  stop?(deadline: number): void | Promise<void>;
}

export interface Registration {
  readonly name: string;
  readonly budget: number | 'none';
  readonly keys?: readonly OwnedKey[] | undefined;
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
  readonly #described = new Map<StageName, TapDescription[]>();
  readonly #house: House;
  #sealed = false;

  constructor(house: Omit<House, 'hidden'>) {
    this.#house = { ...house, hidden: this.#hidden };
  }

  /** @throws RegistrationError */
  register(registration: Registration): void {
    const { name, plugin, keys = [], credentials = [] } = registration;
    if (this.#sealed) throw new RegistrationError(`plugin "${name}" comes too late: the registry is sealed`);
    this.#refuseDoubles(name, keys, plugin.routes ?? []);
    for (const header of credentials) this.#hidden.add(header.toLowerCase());
    for (const [stage, tap] of Object.entries(plugin.hooks ?? {})) this.#tap(registration, stage, tap);
    this.#registrations.push(registration);
  }

  /** No plugin comes after this. */
  seal(): Sealed {
    this.#sealed = true;
    return {
      hooks: this.#hooks,
      plugins: this.#registrations,
      credentials: [...this.#hidden],
      stages: Object.keys(this.#hooks).map((name) => {
        const stage = name as StageName;
        return { stage, failure: failure[stage], taps: this.#described.get(stage) ?? [] };
      }),
    };
  }

  #refuseDoubles(name: string, keys: readonly OwnedKey[], routes: readonly Route[]): void {
    for (const other of this.#registrations) {
      if (other.name === name) throw new RegistrationError(`two plugins are named "${name}"`);
      const key = keys.find((mine) =>
        other.keys?.some((theirs) => theirs.level === mine.level && theirs.path === mine.path),
      );
      if (key) throw new RegistrationError(`plugins "${other.name}" and "${name}" both own the config key ${key.path}`);
      const route = routes.find((mine) =>
        other.plugin.routes?.some((r) => r.method === mine.method && r.path === mine.path),
      );
      if (route) {
        throw new RegistrationError(`plugins "${other.name}" and "${name}" both serve ${route.method} ${route.path}`);
      }
    }
  }

  #tap(registration: Registration, stage: string, tap: unknown): void {
    const { name } = registration;
    if (!isStageName(this.#hooks, stage)) throw new RegistrationError(`plugin "${name}": there is no hook "${stage}"`);
    if (tap === undefined) return;
    if (!hasVariants(stage)) {
      this.#attach(registration, stage, tap);
      return;
    }
    if (typeof tap !== 'object' || tap === null)
      throw new RegistrationError(`plugin "${name}": "${stage}" takes a table`);
    for (const [variant, fn] of Object.entries(tap)) this.#attach(registration, stage, fn, variant);
  }

  #attach(registration: Registration, stage: StageName, fn: unknown, variant?: string): void {
    const { name: plugin, budget } = registration;
    if (typeof fn !== 'function') throw new RegistrationError(`plugin "${plugin}": hook "${stage}" is no function`);
    const others = this.#described.get(stage) ?? [];
    const rival = others.find((other) => other.variant === variant);
    if (rival && exclusive.has(stage)) {
      const what = variant === undefined ? `"${stage}"` : `"${stage}" of "${variant}"`;
      throw new RegistrationError(`plugins "${rival.plugin}" and "${plugin}" both provide ${what}`);
    }
    const tap: Guarded = { plugin, budget };
    hookAt(this.#hooks, stage, variant).tapAsync(
      plugin,
      guarded(stage, tap, (...args) => fn(...args), this.#house),
    );
    this.#described.set(stage, [...others, variant === undefined ? tap : { ...tap, variant }]);
  }
}

/** A complete set of plugins, ready to serve. */
export interface Sealed {
  readonly hooks: Hooks;
  readonly plugins: readonly Registration[];
  /** Lower-case names of the request headers that carry credentials. */
  readonly credentials: readonly string[];
  readonly stages: readonly StageDescription[];
}
