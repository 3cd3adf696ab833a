import { setImmediate } from 'node:timers/promises';
import { types } from 'node:util';
import { Budget, type Clock, charging, uncharged } from './budget.ts';
import { control, type Exchange } from './exchange.ts';
import { Flights } from './flights.ts';
import type { Inner, TappedFunction } from './hooks.ts';
import type { CallEvent, Observer } from './observer.ts';
import { asRefusal, describe, type Refusal, refusals } from './refusal.ts';
import { type Contracts, type Stage, type StageName, stageOf, WrongShape } from './stages.ts';
import type { ApiResponse, Call } from './values.ts';

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

/** A stage's contract with its type erased; {@link contractOf} looked it up by the stage's name. */
interface Contract {
  context?(args: Args, call: Call, hidden: ReadonlySet<string>, plugin: string): unknown;
  ended?(context: unknown, args: Args, plugin: string): void;
  accept?(value: unknown, args: Args, plugin: string): unknown;
  /** Reads what a function of an onion hands to the next one. */
  input?(value: unknown, args: Args): unknown;
}

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
 * @returns a function that answers, or has nothing to say, or throws a refusal and nothing else.
 */
export function guarded(stage: StageName, who: Guarded, fn: PluginFunction, options: GuardOptions): TappedFunction {
  const row = stageOf(stage);
  const isAround = row.kind === 'around';
  const contract = contractOf(stage, options.contracts);
  const tap: Tap = { ...who, stage, fn, row, contract, options, flights: isAround ? new Flights(stage) : undefined };
  if (!isAround) return (...args) => new Invocation(tap, args).run();
  return (value, exchange, inner) => new Invocation(tap, [value, exchange], inner as Inner).run();
}

/** A function of a plugin at a stage, and all that is known of it before it is called. */
interface Tap extends Guarded {
  readonly stage: StageName;
  readonly fn: PluginFunction;
  readonly row: Stage;
  readonly contract: Contract;
  readonly options: GuardOptions;
  /** What its calls share; in an onion only. */
  readonly flights: Flights | undefined;
}

/** Watch hooks run after the answer, so each gets the full budget again, whether the client left or not. */
function budgetFor({ plugin, budget: total, clock, row }: Tap, exchange: Exchange): Budget | undefined {
  if (total === 'none') return undefined;
  if (row.kind === 'watch') return new Budget(total, undefined, clock);
  const budgets = control.budgets(exchange);
  const known = budgets.get(plugin);
  if (known !== undefined) return known;
  const budget = new Budget(total, exchange.client, clock);
  budgets.set(plugin, budget);
  return budget;
}

function contractOf(stage: StageName, { contexts, inputs, results }: Contracts): Contract {
  const { context, returns } = stageOf(stage);
  if (context) return (contexts as unknown as Readonly<Record<string, Contract>>)[stage] ?? {};
  const accept = returns && (results as Readonly<Record<string, Contract['accept']>>)[returns];
  const input = (inputs as Readonly<Record<string, Contract['input']>>)[stage];
  return { ...(accept && { accept }), ...(input && { input }) };
}

/** One call of a plugin's function. */
class Invocation {
  readonly #tap: Tap;
  readonly #args: Args;
  readonly #exchange: Exchange;
  readonly #budget: Budget | undefined;
  readonly #inner: Inner | undefined;
  /** What the budget's ledger had noted before. */
  #begun = 0;
  #tell: (() => void) | undefined;
  /** What a public hook got. */
  #context: unknown;
  /** Pieces of work under way that are charged to nobody. */
  #pauses = 0;
  /** Whether the rest of the onion was asked. */
  #hasAsked = false;
  #isOver = false;

  /** @param inner the rest of the onion. */
  constructor(tap: Tap, args: Args, inner?: Inner) {
    this.#tap = tap;
    this.#args = args;
    this.#inner = inner;
    this.#exchange = args[args.length - 1] as Exchange;
    this.#budget = budgetFor(tap, this.#exchange);
  }

  /** @throws Refusal */
  run(): unknown {
    if (this.#budget?.exhausted) {
      this.#isOver = true;
      return this.#failed(new Exhausted('its budget was spent before the call'));
    }
    let returned: unknown;
    let pending: Promise<unknown> | undefined;
    try {
      if (this.#budget !== undefined) this.#begun = charging.begin(this.#budget);
      returned = this.#call();
      pending = promiseOf(returned);
    } catch (error) {
      return this.#threw(error, 'threw nothing');
    }
    return pending === undefined ? this.#returned(returned) : this.#waited(pending);
  }

  #call(): unknown {
    const { fn, row, contract, options, plugin } = this.#tap;
    const call: Call = this.#budget ?? (row.kind === 'watch' ? unhurried : this.#exchange);
    if (contract.context !== undefined) {
      this.#context = contract.context(this.#args, call, options.hidden, plugin);
      return fn(this.#context);
    }
    if (row.takes[0] === 'response') options.protect?.(this.#args[0] as ApiResponse);
    if (this.#inner !== undefined) return fn(...this.#args, this.#around(call, this.#inner));
    return fn(...this.#args.map((arg) => this.#rest(arg)), call);
  }

  /** The rest of the pipeline takes its own time. */
  #rest(arg: unknown): unknown {
    return typeof arg === 'function' ? (...args: unknown[]) => this.#uncharged(async () => arg(...args)) : arg;
  }

  /** What a function of an onion may ask: the rest, and that with others. */
  #around(call: Call, inner: Inner): object {
    const [value, exchange] = this.#args as [unknown, Exchange];
    const { contract, flights } = this.#tap;
    const next = (given?: unknown) => {
      this.#hasAsked = true;
      return this.#uncharged(async () => {
        this.#requireRunning();
        return inner(given === undefined ? value : contract.input?.(given, this.#args), exchange);
      });
    };
    const share = (key: string, work: (flight: object) => unknown) => {
      this.#hasAsked = true;
      return this.#uncharged(async () => {
        this.#requireRunning();
        const shared = (_: unknown, fork: unknown, flight: unknown) =>
          work(Object.assign(Object(flight), { exchange: fork }));
        const tap = { ...this.#tap, fn: shared };
        return flights?.join(String(key), exchange, (fork) => new Invocation(tap, [value, fork], inner).run());
      });
    };
    const made = { next, share };
    return Object.defineProperty(made, 'signal', { get: () => call.signal, enumerable: true });
  }

  #requireRunning(): void {
    if (this.#isOver) throw new Error('the call has ended');
  }

  #uncharged(work: () => Promise<unknown>): Promise<unknown> {
    const paused = this.#paused(work);
    // The plugin may not wait for it.
    paused.catch(() => undefined);
    return paused;
  }

  async #paused(work: () => Promise<unknown>): Promise<unknown> {
    const budget = this.#budget;
    if (budget?.exhausted) throw new Error('the budget has ended');
    if (budget === undefined || this.#isOver) return work();
    this.#pauses += 1;
    if (this.#pauses === 1) charging.pause(budget, 1);
    try {
      return await work();
    } finally {
      this.#pauses -= 1;
      if (this.#pauses === 0 && !this.#isOver) charging.pause(budget, -1);
    }
  }

  async #waited(pending: Promise<unknown>): Promise<unknown> {
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
    const budget = this.#budget;
    if (budget === undefined) return pending;
    return new Promise((resolve, reject) => {
      this.#tell = () => reject(this.#spent('in the call'));
      charging.whenExhausted(budget, this.#tell);
      pending.then(resolve, reject);
    });
  }

  /** Reading what came back may run the plugin's code, in accessors and proxies. `undefined` means nothing to say. */
  #returned(value: unknown): unknown {
    if (!this.#hasTime()) return this.#failed(this.#spent('in the call'));
    const { contract, plugin } = this.#tap;
    return this.#read(() => {
      contract.ended?.(this.#context, this.#args, plugin);
      // Not to be taken for the steps in which a contract reads a large result.
      if (types.isGeneratorObject(value)) throw new WrongShape('returned a generator: no hook is a generator function');
      if (value !== undefined) return contract.accept?.(value, this.#args, plugin);
      if (this.#hasAsked) throw new WrongShape('returned nothing, after it had asked for the rest');
      return undefined;
    });
  }

  /** @param go begins to read the result, or goes on: a large one is read in steps. */
  #read(go: () => unknown): unknown {
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
    // Who has nothing to say leaves it to the next one.
    return result === undefined ? this.#inner?.(this.#args[0], this.#exchange) : result;
  }

  /** Other work has a turn first, and its time is charged to nobody. */
  async #readOn(steps: Generator): Promise<unknown> {
    await uncharged(this.#budget, () => setImmediate());
    return this.#read(() => steps);
  }

  #threw(error: unknown, nothing: string): unknown {
    return this.#failed(this.#hasTime() ? (error ?? new Error(nothing)) : this.#spent('in the call'));
  }

  /** @throws Refusal, unless the stage goes on without what failed. */
  #failed(error: unknown): undefined {
    const { plugin, stage, row, options } = this.#tap;
    const { outcome, refusal } = this.#readThrown(error);
    this.#end(outcome);
    if (row.fails !== 'open') throw refusal;
    const { requestId } = this.#exchange;
    options.complain({ plugin, stage, requestId, error: outcome === 'exhausted' ? refusal : error });
    return undefined;
  }

  /** Reading what was thrown may run the plugin's code, too. */
  #readThrown(error: unknown): { readonly outcome: CallEvent['outcome']; readonly refusal: Refusal } {
    const { plugin, stage, contract } = this.#tap;
    if (Exhausted.is(error))
      return { outcome: 'exhausted', refusal: asRefusal(refusals.exhausted(plugin, error.message), stage) };
    // In a public hook a refusal is a drop like any other failure; what an inner stage refuses is what its plugin has to say.
    const isPublic = contract.context !== undefined;
    let outcome: CallEvent['outcome'] = 'done';
    const refusal = asRefusal(isPublic ? describe(error) : error, stage, (reason) => {
      outcome = 'failed';
      return isPublic ? refusals.dropped(plugin, reason) : refusals.internal(`plugin "${plugin}": ${reason}`);
    });
    return this.#hasTime() ? { outcome, refusal } : this.#readThrown(this.#spent('in what it threw'));
  }

  #hasTime(): boolean {
    return this.#budget === undefined || this.#isOver || charging.hasTime(this.#budget);
  }

  #spent(where: string): Exhausted {
    return new Exhausted(`its ${this.#tap.budget} ms were spent ${where}`);
  }

  /** Nothing is charged any more. Plugins without a budget are reported only when they fail. */
  #end(outcome: CallEvent['outcome']): void {
    const { plugin, stage, options } = this.#tap;
    const budget = this.#budget;
    if (budget !== undefined && !this.#isOver) {
      if (this.#pauses > 0) charging.pause(budget, -1);
      charging.end(budget, stage, this.#begun, this.#tell);
    }
    this.#isOver = true;
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
