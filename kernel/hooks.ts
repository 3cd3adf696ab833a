import { AsyncParallelHook, AsyncSeriesBailHook, AsyncSeriesWaterfallHook, HookMap, SyncWaterfallHook } from 'tapable';
import type { Charge } from './charge.ts';
import { type Exchange, WaitGroup } from './exchange.ts';
import { asRefusal, type Refusal, refusals } from './refusal.ts';
import {
  type AnswerOf,
  type ArgsOf,
  type AroundStage,
  type AroundValue,
  type Kind,
  type ResultOf,
  type StageName,
  stageNames,
  stageOf,
} from './stages.ts';
import type { Awaitable } from './values.ts';

/** A stage of a request has ended. */
export interface StageEvent {
  readonly exchange: Exchange;
  readonly stage: StageName;
  readonly milliseconds: number;
  /** Whether a plugin had something to say, none had, or the request ended here. A map with functions counts as answered. */
  readonly outcome: 'answered' | 'silent' | 'refused';
  /** With what it was refused, here or in a stage inside this one: `stage` says where. */
  readonly refusal?: Refusal | undefined;
}

/** A call of a plugin's function has ended. */
export interface CallEvent {
  readonly exchange: Exchange;
  readonly plugin: string;
  readonly stage: string;
  /** What the call used, without the calls inside it; 0 where nothing was left for it. */
  readonly milliseconds: number;
  /** What the plugin has left in this request; absent where it has none. */
  readonly budget: Pick<Charge, 'total' | 'remaining'> | undefined;
  readonly outcome: 'done' | 'failed' | 'exhausted';
}

/** Told of what happens in requests, in order to measure; it cannot change anything, and must return at once. */
export interface Observer {
  stage?(event: StageEvent): void;
  /** A plugin's function ended: each one of operators' with a budget, and of all others those that failed. */
  call?(event: CallEvent): void;
  /** The response is out (`status`), or the client is gone (499). */
  response?(exchange: Exchange, status: number): void;
}

/** One function of one plugin at one stage. */
export interface TapDescription {
  readonly plugin: string;
  readonly variant?: string;
  readonly budget: number | 'none';
}

/** What a guarded function calls back, once: at once where its plugin answers at once. An error is a refusal. */
export type Done = (error?: unknown, value?: unknown) => void;

/** The rest of an onion, round what a request has inside it. @throws Refusal */
export type Layer = (value: unknown, exchange: Exchange, innermost: Inner) => unknown;
export type Inner = (value: unknown, exchange: Exchange) => unknown;

/** What a stage takes, the request last. */
export type Args = readonly unknown[];

/** A guarded function at a stage. Of a map, the value is what the one before has made of the first argument. It throws nothing. */
export type Tapped = (value: unknown, args: Args, done: Done) => void;
/** The same in an onion. */
export type Wrapping = (rest: Layer) => Layer;

interface TapOptions extends Pick<TapDescription, 'budget'> {
  readonly name: string;
  readonly stage: number;
}

/** The part of tapable's hooks that is used here, with the types of the stages' arguments erased. */
interface StageHook {
  /** In the order in which they are called. */
  readonly taps: readonly TapOptions[];
  tap(options: TapOptions, fn: Tapped | Wrapping): void;
  tapAsync(options: TapOptions, fn: Tapped | Wrapping): void;
  call(innermost: Layer): Layer;
  callAsync(value: unknown, args: Args, done: Done): void;
}

type HookArgs = [value: unknown, args: Args];
const HOOK_ARGS: [string, string] = ['value', 'args'];
const hookFor: Readonly<Record<Kind, () => unknown>> = {
  gate: () => new AsyncSeriesBailHook<HookArgs, unknown>(HOOK_ARGS),
  pick: () => new AsyncSeriesBailHook<HookArgs, unknown>(HOOK_ARGS),
  map: () => new AsyncSeriesWaterfallHook<HookArgs>(HOOK_ARGS),
  watch: () => new AsyncParallelHook<HookArgs>(HOOK_ARGS),
  around: () => new SyncWaterfallHook(['rest']),
};

/** The result of a hook: a promise only if one of its functions returns one. @throws Refusal */
function answerOf(hook: StageHook, args: Args): unknown {
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

/** Where those come that are last: more than plugins have functions. */
const LAST = 1e6;

/** The functions of all plugins, by stage. */
export class Hooks {
  /** Work that a stop waits for. */
  readonly running = new WaitGroup();
  readonly #hooks: Readonly<Record<StageName, HookMap<StageHook>>>;
  readonly #variants: Readonly<Record<StageName, Set<string>>>;
  readonly #onions = new Map<StageName, Layer>();
  readonly #observer: Pick<Observer, 'stage'>;

  /** @param observer told of each stage with functions. */
  constructor(observer: Pick<Observer, 'stage'>) {
    const byStage = <T>(make: (stage: StageName) => T) =>
      Object.fromEntries(stageNames.map((stage) => [stage, make(stage)])) as Record<StageName, T>;
    this.#hooks = byStage((stage) => new HookMap(() => hookFor[stageOf(stage).kind]() as StageHook));
    this.#variants = byStage(() => new Set());
    this.#observer = observer;
  }

  /** @param isLast whether it comes after those that are not, in any order of registration. */
  tap(
    stage: StageName,
    { plugin: name, variant = '', budget }: TapDescription,
    isLast: boolean,
    fn: Tapped | Wrapping,
  ): void {
    const hook = this.#hooks[stage].for(variant);
    this.#variants[stage].add(variant);
    const place = isLast ? LAST : 0;
    // The one that wraps last is outside: operators' A and B, registered in this order, and then the built-in C make A(B(C(core))).
    // Of tapable a `stage` is a place in the order.
    if (stageOf(stage).kind === 'around') hook.tap({ name, budget, stage: -place - hook.taps.length }, fn);
    else hook.tapAsync({ name, budget, stage: place }, fn);
  }

  /** Composes the onions, now that all functions are there. */
  seal(): void {
    const core: Layer = (value, exchange, innermost) => innermost(value, exchange);
    for (const stage of stageNames) {
      const hook = stageOf(stage).kind === 'around' ? this.#hooks[stage].get('') : undefined;
      if (hook !== undefined) this.#onions.set(stage, hook.call(core));
    }
  }

  /** Who is asked, in order. */
  taps(stage: StageName): readonly TapDescription[] {
    const { variants, kind } = stageOf(stage);
    return [...this.#variants[stage]].flatMap((variant) => {
      const { taps } = this.#hooks[stage].for(variant);
      const ordered = kind === 'around' ? taps.toReversed() : taps;
      return ordered.map(({ name: plugin, budget }) => ({ plugin, ...(variants && { variant }), budget }));
    });
  }

  isTapped(stage: StageName, variant = ''): boolean {
    return this.#hooks[stage].get(variant) !== undefined;
  }

  /**
   * Asks the plugins of a stage. Where none is there, or none has anything to say, a map gives what it was given, and others `undefined`.
   * Without a promise where all of them answer at once, as most do.
   * @param variant for which a plugin is registered, such as an auth type; '' at stages without variants.
   * @throws Refusal
   */
  ask<N extends Exclude<StageName, AroundStage>>(stage: N, args: ArgsOf<N>, variant = ''): Awaitable<AnswerOf<N>> {
    const hook = this.#hooks[stage].get(variant);
    if (hook === undefined) return (stageOf(stage).kind === 'map' ? args[0] : undefined) as AnswerOf<N>;
    const exchange = args[args.length - 1] as Exchange;
    if (exchange.abandoned) requireAlways(stage);
    if (this.#observer.stage === undefined) return answerOf(hook, args) as Awaitable<AnswerOf<N>>;
    return this.#observed(stage, exchange, () => answerOf(hook, args)) as Promise<AnswerOf<N>>;
  }

  /** Asks an onion, in which something is inside the innermost plugin, too. @throws what is inside does. */
  askAround<N extends AroundStage>(
    stage: N,
    value: AroundValue<N>,
    exchange: Exchange,
    innermost: (value: AroundValue<N>, exchange: Exchange) => Awaitable<ResultOf<N>>,
  ): Awaitable<ResultOf<N>> {
    const onion = this.#onions.get(stage);
    if (onion === undefined) return innermost(value, exchange);
    if (exchange.abandoned) requireAlways(stage);
    const ask = () => onion(value, exchange, innermost as Inner) as Awaitable<ResultOf<N>>;
    return this.#observer.stage === undefined ? ask() : (this.#observed(stage, exchange, ask) as Promise<ResultOf<N>>);
  }

  /** @throws Refusal */
  async #observed(stage: StageName, exchange: Exchange, ask: () => unknown): Promise<unknown> {
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

/** Most stages are for a client that waits. @throws Refusal */
function requireAlways(stage: StageName): void {
  if (!stageOf(stage).always) throw asRefusal(refusals.abandoned(), stage);
}
