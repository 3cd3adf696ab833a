import { AsyncParallelHook, AsyncSeriesBailHook, AsyncSeriesWaterfallHook, HookMap, SyncWaterfallHook } from 'tapable';
import type { Budget, Charge } from './charge.ts';
import type { Exchange } from './exchange.ts';
import { asRefusal, type Refusal, refusals } from './refusal.ts';
import {
  type AnswerOf,
  type ArgsOf,
  type AroundStage,
  type AroundValue,
  byStage,
  type Kind,
  type ResultOf,
  type Stage,
  type StageName,
  stages,
} from './stages.ts';
import type { Awaitable } from './values.ts';

/** An event: a stage of a request has ended. */
export interface StageEvent {
  readonly exchange: Exchange;
  readonly stage: StageName;
  readonly milliseconds: number;
  /** Whether a plugin returned something (always so at a map), none did, or the request was refused here. */
  readonly outcome: 'answered' | 'silent' | 'refused';
  /** The refusal, whose `stage` is this one or one inside it. */
  readonly refusal?: Refusal | undefined;
}

/** An event: a call of a plugin's function has ended. */
export interface CallEvent {
  readonly exchange: Exchange;
  readonly plugin: string;
  readonly stage: string;
  /** Time that the call used, without the calls inside it; 0 if no budget was left for it. */
  readonly milliseconds: number;
  /** What the plugin's budget in this request was and what is left, in milliseconds; absent for a call without a budget. */
  readonly charge: Pick<Charge, 'total' | 'remaining'> | undefined;
  readonly outcome: 'done' | 'failed' | 'exhausted';
}

/** Callbacks that measure requests. They cannot change anything, and must return at once. */
export interface Observer {
  stage?(event: StageEvent): void;
  /** Called after each call of an operator's plugin that has a budget there, and after each other call that failed. */
  call?(event: CallEvent): void;
  /** Called when the response is out, or with 499 when the client has left before. */
  response?(exchange: Exchange, status: number): void;
}

/** Where a plugin's function is registered. */
export interface Place {
  readonly stage: StageName;
  /** What it is registered for; '' at stages without variants. */
  readonly variant: string;
  readonly plugin: string;
}

/** One function of one plugin at one stage. */
export interface TapDescription {
  readonly plugin: string;
  readonly variant?: string;
  readonly budget: Budget;
}

/** A stage's arguments, the exchange last. */
export type Args = readonly unknown[];

/** The rest of an around stage with its core, or the core alone. @throws Refusal */
export type Next = (value: unknown, exchange: Exchange) => unknown;
/** The composed functions of an around stage, or of its rest, which end by calling the core. @throws Refusal */
type Composed = (value: unknown, exchange: Exchange, core: Next) => unknown;

/** A guarded function: returns its result, or a promise only if the plugin's function does. @throws Refusal */
export type Guarded = (args: Args, rest?: Next) => unknown;

/** tapable's callback, called once; an error is a refusal. */
type Done = (error?: unknown, value?: unknown) => void;
/** At a map `value` is the first argument as the function before has changed it. */
type Tapped = (value: unknown, args: Args, done: Done) => void;
type Wrapper = (rest: Composed) => Composed;

/** The part of a tapable hook that is used here, without the types of the stage's arguments. */
interface TapableHook {
  tap(name: string, fn: Wrapper): void;
  tapAsync(name: string, fn: Tapped): void;
  call(rest: Composed): Composed;
  callAsync(value: unknown, args: Args, done: Done): void;
}

type HookArgs = [value: unknown, args: Args];
const HOOK_ARGS: [string, string] = ['value', 'args'];
const hookFor: Readonly<Record<Kind, () => unknown>> = {
  gate: () => new AsyncSeriesBailHook<HookArgs, unknown>(HOOK_ARGS),
  pick: () => new AsyncSeriesBailHook<HookArgs, unknown>(HOOK_ARGS),
  map: () => new AsyncSeriesWaterfallHook<HookArgs>(HOOK_ARGS),
  watch: () => new AsyncParallelHook<HookArgs>(HOOK_ARGS),
  // Composes the wrappers: it is called once, when the hooks are made.
  around: () => new SyncWaterfallHook(['rest']),
};

/** Makes of a guarded function one that throws nothing. It calls back at once unless the result is a promise. */
function tapped(fn: Guarded): Tapped {
  return (value, args, done) => {
    let result: unknown;
    try {
      result = fn(value === args[0] ? args : args.with(0, value));
    } catch (refusal) {
      return done(refusal);
    }
    if (result instanceof Promise) void result.then((value) => done(null, value), done);
    else done(null, result);
  };
}

/** Makes a function of an around stage out of a guarded one. */
function wrapper(fn: Guarded): Wrapper {
  return (rest) => (value, exchange, core) => fn([value, exchange], (given, on) => rest(given, on, core));
}

/** Calls a hook. @returns its result: as a promise only if the hook calls back later. @throws Refusal */
function callHook(hook: TapableHook, args: Args): unknown {
  let isSettled = false;
  let error: unknown;
  let value: unknown;
  let settle: Done | undefined;
  hook.callAsync(args[0], args, (failure, result) => {
    if (settle !== undefined) return settle(failure, result);
    isSettled = true;
    error = failure;
    value = result;
  });
  if (!isSettled)
    return new Promise((resolve, reject) => {
      settle = (failure, result) => (failure ? reject(failure) : resolve(result));
    });
  if (error) throw error;
  return value;
}

const callCore: Composed = (value, exchange, core) => core(value, exchange);

/** A guarded function with its place. */
type HookedFunction = Place & { readonly guarded: Guarded };

/** The guarded functions of one stage, of all plugins. */
class StageHooks<N extends StageName> {
  readonly #stage: N;
  readonly #row: Stage;
  readonly #observer: Pick<Observer, 'stage'>;
  readonly #hooks: HookMap<TapableHook>;
  /** At an around stage: what the hook has made of the functions. */
  readonly #composed: Composed | undefined;

  constructor(stage: N, functions: readonly HookedFunction[], observer: Pick<Observer, 'stage'>) {
    this.#stage = stage;
    this.#row = stages[stage];
    this.#observer = observer;
    const { kind } = this.#row;
    this.#hooks = new HookMap(() => hookFor[kind]() as TapableHook);
    if (kind === 'around') {
      // Who wraps last is outermost: functions A, B and C make A(B(C(core))).
      for (const { plugin, guarded } of functions.toReversed()) this.#hooks.for('').tap(plugin, wrapper(guarded));
      this.#composed = this.#hooks.get('')?.call(callCore);
    } else
      for (const { variant, plugin, guarded } of functions) this.#hooks.for(variant).tapAsync(plugin, tapped(guarded));
  }

  isTapped(variant = ''): boolean {
    return this.#hooks.get(variant) !== undefined;
  }

  /**
   * Calls the functions. If there are none, or none returns anything, the result of a map is its first argument, and that of
   * other stages `undefined`. It is a promise where stages are observed; else only if a function returns one.
   * @param variant that functions are registered for, such as an auth type; '' at stages without variants.
   * @throws Refusal
   */
  ask(args: ArgsOf<N>, variant = ''): Awaitable<AnswerOf<N>> {
    const hook = this.#hooks.get(variant);
    if (hook === undefined) return (this.#row.kind === 'map' ? args[0] : undefined) as AnswerOf<N>;
    const exchange = args[args.length - 1] as Exchange;
    return this.#called(exchange, () => callHook(hook, args)) as Awaitable<AnswerOf<N>>;
  }

  /** Calls the functions of an around stage; the last one wraps `core`. @throws Refusal, or what `core` throws. */
  askAround(
    value: AroundValue<N & AroundStage>,
    exchange: Exchange,
    core: (value: AroundValue<N & AroundStage>, exchange: Exchange) => Awaitable<ResultOf<N>>,
  ): Awaitable<ResultOf<N>> {
    const composed = this.#composed;
    if (composed === undefined) return core(value, exchange);
    return this.#called(exchange, () => composed(value, exchange, core as Next)) as Awaitable<ResultOf<N>>;
  }

  /** Most stages are useless without a client that waits. @throws Refusal at these stages, once the client has left. */
  #called(exchange: Exchange, ask: () => unknown): unknown {
    if (exchange.abandoned && !this.#row.always) throw asRefusal(refusals.abandoned(), this.#stage);
    return this.#observer.stage === undefined ? ask() : this.#observed(exchange, ask);
  }

  /** @throws Refusal */
  async #observed(exchange: Exchange, ask: () => unknown): Promise<unknown> {
    const stage = this.#stage;
    const started = performance.now();
    const tell = (outcome: StageEvent['outcome'], refusal?: Refusal) =>
      this.#observer.stage?.({ exchange, stage, milliseconds: performance.now() - started, outcome, refusal });
    try {
      const value = await ask();
      tell(value === undefined ? 'silent' : 'answered');
      return value;
    } catch (error) {
      const refusal = asRefusal(error, stage);
      tell('refused', refusal);
      throw refusal;
    }
  }
}

/** The functions of all stages. */
export type Hooks = {
  readonly [N in StageName]: Omit<StageHooks<N>, N extends AroundStage ? 'ask' : 'askAround'>;
};

/**
 * Taps tapable's hooks.
 * @param functions in the order in which they are called; at around stages the first is outermost.
 * @param observer gets an event for each stage that has functions.
 */
export function hooksOf(functions: readonly HookedFunction[], observer: Pick<Observer, 'stage'>): Hooks {
  const own = (stage: StageName) => functions.filter((each) => each.stage === stage);
  return byStage((stage) => new StageHooks(stage, own(stage), observer)) as Record<StageName, unknown> as Hooks;
}
