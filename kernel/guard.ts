import { setImmediate } from 'node:timers/promises';
import { types } from 'node:util';
import { Budget, type Clock, note, Stopwatch, uncharged } from './budget.ts';
import { control, type Exchange } from './exchange.ts';
import type { TappedFunction } from './hooks.ts';
import type { CallEvent, Observer } from './observer.ts';
import { asRefusal, describe, type Refusal, readRefusal, refusals } from './refusal.ts';
import { type Contracts, type Stage, type StageName, stageOf } from './stages.ts';
import type { ApiResponse, Awaitable, Call } from './values.ts';

/** Who is called and with how much time: what the guard knows of a plugin. */
export interface Guarded {
  readonly plugin: string;
  /** Milliseconds per request, or none: the plugin bounds its own stages. */
  readonly budget: number | 'none';
  /** Charges its budget, where that is not the time that passes. */
  readonly clock?: Clock | undefined;
}

/** What the guard has for all plugins alike. */
export interface GuardOptions {
  readonly contracts: Contracts;
  /** Freezes what the plugin gets of a response, if need be. */
  readonly protect?: Contracts['protect'] | undefined;
  /** Told of every failure after which a request goes on. */
  readonly complain: (complaint: { plugin: string; stage: string; requestId: string; error: unknown }) => void;
  /** Lower-case names of request headers that carry credentials; complete once every plugin is registered. */
  readonly hidden: ReadonlySet<string>;
  /** May get its members later, when every plugin is registered. */
  readonly observer?: Observer;
}

type PluginFunction = (...args: unknown[]) => unknown;
type Args = readonly unknown[];

/** The contract of any stage: which stage it is for, its name has selected. */
interface Contract {
  context?(args: Args, call: Call, hidden: ReadonlySet<string>, plugin: string): unknown;
  ended?(context: unknown, args: Args, plugin: string): void;
  accept?(value: unknown, args: Args, plugin: string): unknown;
}

/** What a call came to: a refusal, a result, or neither. */
interface Verdict {
  readonly refusal: Refusal | null;
  readonly result?: unknown;
}

const NOTHING: Verdict = Object.freeze({ refusal: null });

/** A budget ended; the guard's own, so that no plugin can throw it, nor be asked whether it did. */
class Exhausted extends Error {
  readonly #own = true;

  static is(error: unknown): error is Exhausted {
    return typeof error === 'object' && error !== null && #own in error;
  }
}

/** For functions that watch without a budget. */
const unhurried: Call = Object.freeze({
  get signal() {
    return new AbortController().signal;
  },
});

/**
 * The only wrapper round a plugin's function: it charges the budget, aborts the plugin's signal, reads what comes back,
 * applies the stage's failure policy and names the culprit.
 * @returns a function for tapable: it calls back once, and never throws, whatever the plugin does.
 */
export function guarded(stage: StageName, who: Guarded, fn: PluginFunction, options: GuardOptions): TappedFunction {
  const tap: Tap = { ...who, stage, fn, row: stageOf(stage), contract: contractOf(stage, options.contracts), options };
  return (...argsAndCallback) => {
    const done = argsAndCallback.pop() as (refusal: Refusal | null, result?: unknown) => void;
    const verdict = new Invocation(tap, argsAndCallback).run();
    if (verdict instanceof Promise) void verdict.then(({ refusal, result }) => done(refusal, result));
    else done(verdict.refusal, verdict.result);
  };
}

/** A function of a plugin at a stage, and all that is known of it before it is called. */
interface Tap extends Guarded {
  readonly stage: StageName;
  readonly fn: PluginFunction;
  readonly row: Stage;
  readonly contract: Contract;
  readonly options: GuardOptions;
}

function budgetFor({ plugin, budget: total, row }: Tap, exchange: Exchange): Budget | undefined {
  if (total === 'none') return undefined;
  // Watching happens after the fact: it gets a fresh allowance, whether the budget is spent or the client gone.
  if (row.kind === 'watch') return new Budget(total);
  const budgets = control.budgets(exchange);
  const known = budgets.get(plugin);
  if (known !== undefined) return known;
  const budget = new Budget(total, exchange);
  budgets.set(plugin, budget);
  return budget;
}

function contractOf(stage: StageName, { contexts, results }: Contracts): Contract {
  const { context, returns } = stageOf(stage);
  if (context) return (contexts as Readonly<Record<string, Contract>>)[stage] ?? {};
  const accept = returns && (results as Readonly<Record<string, Contract['accept']>>)[returns];
  return accept ? { accept } : {};
}

/** One call of a plugin's function. None of its methods throws, and none of its promises rejects. */
class Invocation {
  readonly #tap: Tap;
  readonly #args: Args;
  readonly #exchange: Exchange;
  readonly #budget: Budget | undefined;
  #stopwatch: Stopwatch | undefined;
  #context: unknown;

  constructor(tap: Tap, args: Args) {
    this.#tap = tap;
    this.#args = args;
    this.#exchange = args[args.length - 1] as Exchange;
    this.#budget = budgetFor(tap, this.#exchange);
  }

  run(): Awaitable<Verdict> {
    if (this.#budget?.exhausted) return this.#failed(new Exhausted('its budget was spent before the call'));
    let returned: unknown;
    let pending: Promise<unknown> | undefined;
    try {
      this.#stopwatch = this.#budget && new Stopwatch(this.#budget, this.#tap.clock);
      returned = this.#call();
      pending = promiseOf(returned);
    } catch (error) {
      return this.#threw(error, 'threw nothing');
    }
    return pending === undefined ? this.#returned(returned) : this.#waited(pending);
  }

  #call(): unknown {
    const { fn, row, contract, plugin, options } = this.#tap;
    const call: Call = this.#budget ?? (row.kind === 'watch' ? unhurried : this.#exchange);
    if (contract.context !== undefined) {
      this.#context = contract.context(this.#args, call, options.hidden, plugin);
      return fn(this.#context);
    }
    if (row.takes[0] === 'response') options.protect?.(this.#args[0] as ApiResponse);
    return this.#budget === undefined
      ? fn(...this.#args, call)
      : fn(...this.#args.map((arg) => this.#uncharged(arg)), call);
  }

  /** The rest of the pipeline takes its own time. */
  #uncharged(arg: unknown): unknown {
    if (typeof arg !== 'function') return arg;
    return (...args: unknown[]) => {
      const work = uncharged(this.#budget, async () => {
        if (this.#budget?.exhausted) throw new Error('the budget has ended');
        return arg(...args);
      });
      // The plugin may not wait for it.
      work.catch(() => undefined);
      return work;
    };
  }

  async #waited(pending: Promise<unknown>): Promise<Verdict> {
    let returned: unknown;
    try {
      returned = await this.#withinBudget(pending);
    } catch (error) {
      return this.#threw(error, 'rejected with nothing');
    }
    return this.#returned(returned);
  }

  /** Whatever the function does after its budget ended lands nowhere. */
  #withinBudget(pending: Promise<unknown>): Promise<unknown> {
    const stopwatch = this.#stopwatch;
    if (stopwatch === undefined) return pending;
    return new Promise((resolve, reject) => {
      stopwatch.whenExhausted(() => reject(this.#spent('in the call')));
      pending.then(resolve, reject);
    });
  }

  /** Reading what came back may run the plugin's code, in accessors and proxies. `undefined` means nothing to say. */
  #returned(value: unknown): Awaitable<Verdict> {
    if (!this.#hasTime()) return this.#failed(this.#spent('in the call'));
    const { contract, plugin, row } = this.#tap;
    try {
      contract.ended?.(this.#context, this.#args, plugin);
    } catch (error) {
      return this.#threw(error, 'threw nothing');
    }
    if (value === undefined && !row.mustAnswer) {
      this.#end('done');
      return NOTHING;
    }
    return this.#read(() => contract.accept?.(value, this.#args, plugin));
  }

  /** @param go begins to read the result, or goes on: a large one is read in steps. */
  #read(go: () => unknown): Awaitable<Verdict> {
    let result: unknown;
    let steps: Generator | undefined;
    try {
      result = go();
      if (types.isGeneratorObject(result)) {
        const { done, value } = result.next();
        if (done) result = value;
        else steps = result;
      }
    } catch (error) {
      return this.#failed(this.#hasTime() ? (error ?? new Error('threw nothing')) : this.#spent('in what it returned'));
    }
    if (!this.#hasTime()) return this.#failed(this.#spent('in what it returned'));
    if (steps !== undefined) return this.#readOn(steps);
    this.#end('done');
    return this.#tap.row.unanimous ? NOTHING : { refusal: null, result };
  }

  /** Other work has a turn first, and its time is charged to nobody. */
  async #readOn(steps: Generator): Promise<Verdict> {
    this.#stopwatch?.pause();
    await setImmediate();
    this.#stopwatch?.resume();
    return this.#read(() => steps);
  }

  #threw(error: unknown, nothing: string): Verdict {
    return this.#failed(this.#hasTime() ? (error ?? new Error(nothing)) : this.#spent('in the call'));
  }

  #failed(error: unknown): Verdict {
    const { plugin, stage, row, options } = this.#tap;
    const { outcome, refusal } = this.#readThrown(error);
    this.#end(outcome);
    if (row.fails !== 'open') return { refusal };
    const { requestId } = this.#exchange;
    options.complain({ plugin, stage, requestId, error: outcome === 'exhausted' ? refusal : error });
    return NOTHING;
  }

  /** Reading what was thrown may run the plugin's code, too. */
  #readThrown(error: unknown): { readonly outcome: CallEvent['outcome']; readonly refusal: Refusal } {
    const { plugin, contract } = this.#tap;
    if (Exhausted.is(error)) {
      return { outcome: 'exhausted', refusal: asRefusal(refusals.exhausted(plugin, error.message)) };
    }
    const isPublic = contract.context !== undefined;
    // In a public hook a refusal is a drop like any other failure; what an inner stage refuses is what its plugin has to say.
    const said = isPublic ? undefined : readRefusal(error);
    const reason = said === undefined ? describe(error) : '';
    if (!this.#hasTime()) return this.#readThrown(this.#spent('in what it threw'));
    if (said !== undefined) return { outcome: 'done', refusal: said };
    const refusal = isPublic ? refusals.dropped(plugin, reason) : refusals.internal(`plugin "${plugin}": ${reason}`);
    return { outcome: 'failed', refusal: asRefusal(refusal) };
  }

  #hasTime(): boolean {
    return this.#stopwatch?.charge() ?? true;
  }

  #spent(where: string): Exhausted {
    return new Exhausted(`its ${this.#tap.budget} ms were spent ${where}`);
  }

  /** Nothing is charged any more. Of plugins without a budget only failures are worth a word. */
  #end(outcome: CallEvent['outcome']): void {
    const { plugin, stage, options } = this.#tap;
    const budget = this.#budget;
    if (this.#stopwatch !== undefined && budget !== undefined) {
      this.#stopwatch.stop();
      note(budget, { stage, milliseconds: this.#stopwatch.used });
    }
    if (budget === undefined && outcome === 'done') return;
    options.observer?.call?.({ exchange: this.#exchange, plugin, stage, budget, outcome });
  }
}

const { then } = Promise.prototype;

/** The promise of what a call returned, if it did return one. Only those of JavaScript itself are used as they are. */
function promiseOf(value: unknown): Promise<unknown> | undefined {
  if (typeof value !== 'object' || value === null || !('then' in value) || typeof value.then !== 'function') {
    return undefined;
  }
  return types.isPromise(value) && value.then === then ? value : new Promise((resolve) => resolve(value));
}
