import { SyncHook } from 'tapable';
import type { Exchange } from './exchange.ts';
import type { Observer, StageEvent } from './observer.ts';
import { asRefusal, type Refusal, refusals } from './refusal.ts';
import {
  type ArgsOf,
  type AroundStage,
  type AroundValue,
  type Kind,
  type ResultOf,
  type StageName,
  stageNames,
  stageOf,
  type VariantStage,
} from './stages.ts';
import type { Awaitable } from './values.ts';
import { WaitGroup } from './wait-group.ts';

/** A guarded function: it gets the stage's arguments, and in an onion what comes after it, as a list. It throws nothing but refusals. */
export type TappedFunction = (args: readonly unknown[]) => unknown;

/** The rest of an onion. */
export type Inner = (value: unknown, exchange: Exchange) => unknown;

/** One function of one plugin at one stage. */
export interface TapDescription {
  readonly plugin: string;
  readonly variant?: string;
  readonly budget: number | 'none';
}

/** What tapable keeps of a function. */
interface Tap extends TapDescription {
  readonly name: string;
  readonly fn: TappedFunction;
}

/** The class of tapable's hooks, which it exports as a type only. It compiles its taps when it is first called. */
const Hook = Object.getPrototypeOf(new SyncHook()).constructor as new () => {
  readonly taps: readonly Tap[];
  tap(options: Omit<Tap, 'fn'> & { readonly stage: number }, fn: TappedFunction): void;
  call(args: readonly unknown[]): unknown;
};

/** A stage's hook: it answers at once where all of its functions do, and by a promise otherwise. */
class StageHook extends Hook {
  readonly #kind: Kind;

  constructor(kind: Kind) {
    super();
    this.#kind = kind;
  }

  compile({ taps }: { readonly taps: readonly Tap[] }): TappedFunction {
    return runners[this.#kind](taps.map(({ fn }) => fn));
  }
}

type Runner = (fns: readonly TappedFunction[]) => TappedFunction;

/** Asks one after the other until one has something to say. */
const first: Runner = (fns) => {
  const [only] = fns;
  if (only !== undefined && fns.length === 1) return only;
  const from = (start: number, args: readonly unknown[]): unknown => {
    for (let index = start; index < fns.length; index++) {
      const result = fns[index]?.(args);
      if (result instanceof Promise)
        return result.then((late: unknown) => (late === undefined ? from(index + 1, args) : late));
      if (result !== undefined) return result;
    }
    return undefined;
  };
  return (args) => from(0, args);
};

/** Hands what each returns to the next. */
const inTurn: Runner = (fns) => {
  const from = (start: number, given: readonly unknown[]): unknown => {
    let args = given;
    for (let index = start; index < fns.length; index++) {
      const result = fns[index]?.(args);
      const before = args;
      if (result instanceof Promise) return result.then((late: unknown) => from(index + 1, withFirst(before, late)));
      args = withFirst(before, result);
    }
    return args[0];
  };
  return (args) => from(0, args);
};

function withFirst(args: readonly unknown[], value: unknown): readonly unknown[] {
  return value === undefined ? args : args.with(0, value);
}

/** Tells all at once. */
const all: Runner = (fns) => {
  return (args) => {
    const late = fns.map((fn) => fn(args)).filter((result) => result instanceof Promise);
    return late.length === 0 ? undefined : Promise.all(late).then(() => undefined);
  };
};

/** Puts each function round those after it; the innermost is asked for last. Composed once. */
const onion: Runner = (fns) => {
  type Layer = (value: unknown, exchange: Exchange, innermost: Inner) => unknown;
  const ask: Layer = fns.reduceRight<Layer>(
    (inner, fn) => (value, exchange, innermost) =>
      fn([value, exchange, (next: unknown, on: Exchange) => inner(next, on, innermost)]),
    (value, exchange, innermost) => innermost(value, exchange),
  );
  return (args) => ask(...(args as Parameters<Layer>));
};

const runners: Readonly<Record<Kind, Runner>> = { gate: first, pick: first, map: inTurn, watch: all, around: onion };

/** The functions of all plugins, by stage. */
export class Hooks {
  /** Work that a stop waits for. */
  readonly running = new WaitGroup();
  readonly #hooks: Readonly<Record<StageName, Map<string, StageHook>>>;
  readonly #observer: Pick<Observer, 'stage'>;

  /** @param observer told of each stage that had somebody to ask; read anew each time. */
  constructor(observer: Pick<Observer, 'stage'>) {
    this.#hooks = Object.fromEntries(stageNames.map((name) => [name, new Map()])) as Record<
      StageName,
      Map<string, StageHook>
    >;
    this.#observer = observer;
  }

  /** @param isLast whether it comes after those that are not, wherever they were registered. */
  tap(stage: StageName, { plugin, variant = '', budget }: TapDescription, isLast: boolean, fn: TappedFunction): void {
    const hooks = this.#hooks[stage];
    const hook = hooks.get(variant) ?? new StageHook(stageOf(stage).kind);
    hooks.set(variant, hook);
    hook.tap({ name: plugin, plugin, variant, budget, stage: isLast ? 1 : 0 }, fn);
  }

  /** Who is asked, in order. */
  taps(stage: StageName): readonly TapDescription[] {
    return [...this.#hooks[stage].keys()].flatMap((variant) => this.tapsOf(stage, variant));
  }

  tapsOf(stage: StageName, variant: string): readonly TapDescription[] {
    const taps = this.#hooks[stage].get(variant)?.taps ?? [];
    return taps.map(({ plugin, budget }) =>
      stageOf(stage).variants ? { plugin, variant, budget } : { plugin, budget },
    );
  }

  isTapped(stage: StageName, variant = ''): boolean {
    return this.#hooks[stage].has(variant);
  }

  /**
   * Asks the plugins of a stage: `undefined` when none had anything to say. Without a promise where all of them answer at
   * once, as most do.
   * @throws Refusal
   */
  ask<N extends Exclude<StageName, VariantStage | AroundStage>>(
    stage: N,
    ...args: ArgsOf<N>
  ): Awaitable<ResultOf<N> | undefined> {
    return this.#ask(stage, '', args, args[args.length - 1] as Exchange) as Awaitable<ResultOf<N> | undefined>;
  }

  /** Asks the plugin that is registered for a variant, such as an auth type; '' is that of stages without variants. @throws Refusal */
  askFor<N extends StageName>(stage: N, variant: string, ...args: ArgsOf<N>): Awaitable<ResultOf<N> | undefined> {
    return this.#ask(stage, variant, args, args[args.length - 1] as Exchange) as Awaitable<ResultOf<N> | undefined>;
  }

  /** Asks an onion, in which something is inside the innermost plugin, too. @throws Refusal */
  askAround<N extends AroundStage>(
    stage: N,
    value: AroundValue<N>,
    exchange: Exchange,
    innermost: (value: AroundValue<N>, exchange: Exchange) => Awaitable<ResultOf<N>>,
  ): Awaitable<ResultOf<N>> {
    if (!this.isTapped(stage)) return innermost(value, exchange);
    return this.#ask(stage, '', [value, exchange, innermost], exchange) as Awaitable<ResultOf<N>>;
  }

  #ask(stage: StageName, variant: string, args: readonly unknown[], exchange: Exchange): unknown {
    const hook = this.#hooks[stage].get(variant);
    if (hook === undefined) return undefined;
    if (exchange.abandoned && stageOf(stage).always !== true) throw asRefusal(refusals.abandoned(), stage);
    return this.#observer.stage === undefined ? hook.call(args) : this.#observed(hook, stage, args, exchange);
  }

  async #observed(hook: StageHook, stage: StageName, args: readonly unknown[], exchange: Exchange): Promise<unknown> {
    const started = performance.now();
    let outcome: StageEvent['outcome'] = 'refused';
    let refusal: Refusal | undefined;
    try {
      const result = await hook.call(args);
      outcome = result === undefined ? 'silent' : 'answered';
      return result;
    } catch (error) {
      refusal = asRefusal(error, stage);
      throw refusal;
    } finally {
      this.#observer.stage?.({ exchange, stage, milliseconds: performance.now() - started, outcome, refusal });
    }
  }
}
