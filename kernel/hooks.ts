import { AsyncParallelHook, AsyncSeriesBailHook, AsyncSeriesWaterfallHook, HookMap } from 'tapable';
import type { Exchange } from './exchange.ts';
import type { Observer, StageEvent } from './observer.ts';
import { at, refusals } from './refusal.ts';
import {
  type ArgsOf,
  type Kind,
  type ResultOf,
  type StageName,
  stageNames,
  stageOf,
  type VariantStage,
} from './stages.ts';
import type { Awaitable } from './values.ts';

/** The part of tapable's hooks that is used here; nobody else ever holds one. */
interface Hook {
  callAsync(...argsAndCallback: unknown[]): void;
  tapAsync(name: string, fn: TappedFunction): void;
}

/** Takes a stage's arguments and a callback. */
export type TappedFunction = (...argsAndCallback: unknown[]) => void;

type Names = [string, ...string[]];

/** @param names of the arguments. */
const createHook: Readonly<Record<Kind, (names: Names) => Hook>> = {
  gate: (names) => new AsyncSeriesBailHook<unknown[], unknown>(names),
  pick: (names) => new AsyncSeriesBailHook<unknown[], unknown>(names),
  map: (names) => new AsyncSeriesWaterfallHook<unknown[]>(names),
  watch: (names) => new AsyncParallelHook<unknown[]>(names),
};

/** The functions of all plugins, by stage. */
export class Hooks {
  readonly #hooks: Readonly<Record<StageName, HookMap<Hook>>>;
  readonly #observer: Pick<Observer, 'stage'>;

  /** @param observer told of each stage that had somebody to ask; read anew each time. */
  constructor(observer: Pick<Observer, 'stage'>) {
    const hookMap = (name: StageName) => {
      const { kind, takes } = stageOf(name);
      const [first = 'exchange', ...rest] = [...takes, 'exchange'];
      return new HookMap<Hook>(() => createHook[kind]([first, ...rest]));
    };
    this.#hooks = Object.fromEntries(stageNames.map((name) => [name, hookMap(name)])) as Record<
      StageName,
      HookMap<Hook>
    >;
    this.#observer = observer;
  }

  /** @param variant of stages that have some; empty for the others. */
  tap(stage: StageName, variant: string, plugin: string, fn: TappedFunction): void {
    this.#hooks[stage].for(variant).tapAsync(plugin, fn);
  }

  isTapped(stage: StageName, variant = ''): boolean {
    return this.#hooks[stage].get(variant) !== undefined;
  }

  /**
   * Asks the plugins of a stage: `undefined` when none had anything to say. Without a promise where all of them answer at
   * once, as most do: this and the guard are the only places that tell the two apart.
   * @throws Refusal
   */
  ask<N extends Exclude<StageName, VariantStage>>(stage: N, ...args: ArgsOf<N>): Awaitable<ResultOf<N> | undefined> {
    return this.askAny(stage, '', args);
  }

  /** Asks the plugin that is registered for an auth type, a mode or a route. @throws Refusal */
  askFor<N extends VariantStage>(stage: N, variant: string, ...args: ArgsOf<N>): Awaitable<ResultOf<N> | undefined> {
    return this.askAny(stage, variant, args);
  }

  /** Asks the plugins of any stage. @throws Refusal */
  askAny<N extends StageName>(stage: N, variant: string, args: ArgsOf<N>): Awaitable<ResultOf<N> | undefined>;
  askAny(stage: StageName, variant: string, args: readonly unknown[]): unknown {
    const hook = this.#hooks[stage].get(variant);
    if (hook === undefined) return undefined;
    const exchange = args[args.length - 1] as Exchange;
    if (exchange.abandoned && stageOf(stage).always !== true) throw at(stage, refusals.abandoned());
    return this.#observer.stage === undefined ? call(hook, stage, args) : this.#observed(hook, stage, args, exchange);
  }

  async #observed(hook: Hook, stage: StageName, args: readonly unknown[], exchange: Exchange): Promise<unknown> {
    const started = performance.now();
    let outcome: StageEvent['outcome'] = 'refused';
    try {
      const result = await call(hook, stage, args);
      outcome = result === undefined ? 'silent' : 'answered';
      return result;
    } finally {
      this.#observer.stage?.({ exchange, stage, milliseconds: performance.now() - started, outcome });
    }
  }
}

/** What a hook calls back with, or a promise of it. @throws Refusal */
function call(hook: Hook, stage: StageName, args: readonly unknown[]): unknown {
  const completion: Completion = { isDone: false, error: undefined, result: undefined, tell: undefined };
  hook.callAsync(...args, (error: unknown, result: unknown) => {
    completion.isDone = true;
    completion.error = error;
    completion.result = result;
    completion.tell?.();
  });
  return completion.isDone ? read(completion, stage) : endOf(completion).then(() => read(completion, stage));
}

/** What a hook has called back with, once it has. */
interface Completion {
  isDone: boolean;
  error: unknown;
  result: unknown;
  tell: (() => void) | undefined;
}

function endOf(completion: Completion): Promise<void> {
  return new Promise((resolve) => {
    completion.tell = resolve;
  });
}

/** @throws Refusal */
function read({ error, result }: Completion, stage: StageName): unknown {
  if (error) throw at(stage, error);
  return result;
}
