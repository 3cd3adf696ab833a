import { setImmediate } from 'node:timers/promises';
import { types } from 'node:util';
import { Budget } from './budget.ts';
import { Charge, Exhausted } from './charge.ts';
import { control, type Exchange } from './exchange.ts';
import { Flights } from './flights.ts';
import type { Inner, TappedFunction } from './hooks.ts';
import type { CallEvent } from './observer.ts';
import { endCall, hasAsked, OnionCall } from './onion-call.ts';
import { accepted, called, promiseOf, unchargedRest } from './plugin-function.ts';
import { asRefusal, errorForLog, type Refusal, refusals } from './refusal.ts';
import { type StageName, stageOf, WrongShape } from './stages.ts';
import { type Args, contractOf, type Guarded, type GuardOptions, type PluginFunction, type Tap } from './tap.ts';
import type { ApiResponse, CallContext } from './values.ts';

/** For functions that watch without a budget: it never aborts. */
const neverAborts: CallContext = Object.freeze({
  get signal() {
    return new AbortController().signal;
  },
});

/**
 * The only wrapper round a plugin's function. It charges the budget, aborts the plugin's signal, reads what comes back,
 * applies the stage's failure policy and names the culprit.
 * @returns a function that answers, or has nothing to say, or throws a refusal and nothing else.
 */
export function guarded(stage: StageName, who: Guarded, fn: PluginFunction, options: GuardOptions): TappedFunction {
  const row = stageOf(stage);
  const isAround = row.kind === 'around';
  const contract = contractOf(stage, options.contracts);
  const tap: Tap = {
    ...who,
    stage,
    fn,
    row,
    contract,
    options,
    flights: isAround ? new Flights(options.running) : undefined,
  };
  const isPlain = who.budget === 'none' && row.kind !== 'watch' && options.protect === undefined;
  if (isPlain && !isAround && contract.context === undefined) return plainly(tap);
  if (!isAround) return (args) => new Invocation(tap, args).run();
  return ([value, exchange, inner]) => new Invocation(tap, [value, exchange], inner as Inner).run();
}

/** Asks a function without a budget: what it answers at once, as most do, needs no {@link Invocation}. */
function plainly(tap: Tap): TappedFunction {
  const { fn } = tap;
  const accept = (returned: unknown, args: Args): unknown => {
    const result = returned === undefined ? undefined : accepted(tap, returned, args);
    // A generator of the plugin's own does not get here: `accepted` refuses it.
    const isRead = result === returned || !types.isGeneratorObject(result);
    return isRead ? result : new Invocation(tap, args).resume(result);
  };
  return (args) => {
    try {
      const returned = called(fn, args);
      const pending = promiseOf(returned);
      return pending === undefined ? accept(returned, args) : new Invocation(tap, args).waited(pending);
    } catch (error) {
      return new Invocation(tap, args).threw(error, 'threw nothing');
    }
  };
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

/** One call of a plugin's function. */
class Invocation {
  readonly #tap: Tap;
  readonly #args: Args;
  readonly #exchange: Exchange;
  readonly #budget: Budget | undefined;
  readonly #inner: Inner | undefined;
  #charge: Charge | undefined;
  /** What a public hook got. */
  #context: unknown;
  #onion: OnionCall | undefined;

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
    if (this.#budget?.exhausted) return this.#failed(new Exhausted('its budget was spent before the call'));
    let returned: unknown;
    let pending: Promise<unknown> | undefined;
    try {
      this.#charge = this.#budget && new Charge(this.#budget);
      returned = this.#call();
      pending = promiseOf(returned);
    } catch (error) {
      return this.threw(error, 'threw nothing');
    }
    return pending === undefined ? this.#returned(returned) : this.waited(pending);
  }

  #call(): unknown {
    const { fn, row, contract, options, plugin } = this.#tap;
    const call: CallContext = this.#budget ?? (row.kind === 'watch' ? neverAborts : this.#exchange);
    if (contract.context !== undefined) {
      this.#context = contract.context(this.#args, call, options.hidden, plugin);
      return fn(this.#context);
    }
    if (row.takes[0] === 'response') options.protect?.(this.#args[0] as ApiResponse);
    if (this.#inner !== undefined) {
      this.#onion = this.#layered(call, this.#inner);
      return fn(...this.#args, this.#onion);
    }
    const charge = this.#charge;
    return charge === undefined
      ? fn(...this.#args, call)
      : fn(...this.#args.map((arg) => unchargedRest(arg, charge)), call);
  }

  #layered(call: CallContext, inner: Inner): OnionCall {
    const charge = this.#charge;
    const [tap, value, exchange] = [this.#tap, this.#args[0], this.#exchange];
    const again = (other: Tap, fork: Exchange) => new Invocation(other, [value, fork], inner).run();
    return new OnionCall({ tap, value, exchange, inner, call, charge, again });
  }

  async waited(pending: Promise<unknown>): Promise<unknown> {
    let returned: unknown;
    try {
      // Whatever the function does after its budget ended lands nowhere.
      returned = await (this.#charge?.within(pending, () => this.#spent('in the call')) ?? pending);
    } catch (error) {
      return this.threw(error, 'rejected with nothing');
    }
    return this.#returned(returned);
  }

  /** Reading what came back may run the plugin's code, in accessors and proxies. `undefined` means nothing to say. */
  #returned(value: unknown): unknown {
    if (!this.#hasTime()) return this.#failed(this.#spent('in the call'));
    const { contract, plugin } = this.#tap;
    return this.#read(() => {
      contract.ended?.(this.#context, this.#args, plugin);
      if (value !== undefined) return accepted(this.#tap, value, this.#args);
      if (hasAsked(this.#onion)) throw new WrongShape('returned nothing, after it had asked for the rest');
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
    // A function that has nothing to say leaves the answer to the next one.
    return result === undefined ? this.#inner?.(this.#args[0], this.#exchange) : result;
  }

  resume(steps: Generator): unknown {
    return this.#read(() => steps);
  }

  /** Other work has a turn first, and its time is charged to nobody. */
  async #readOn(steps: Generator): Promise<unknown> {
    await (this.#charge?.pause(() => setImmediate()) ?? setImmediate());
    return this.#read(() => steps);
  }

  threw(error: unknown, nothing: string): unknown {
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
    const refusal = asRefusal(isPublic ? errorForLog(error) : error, stage, (reason) => {
      outcome = 'failed';
      return isPublic ? refusals.dropped(plugin, reason) : refusals.internal(`plugin "${plugin}": ${reason}`);
    });
    return this.#hasTime() ? { outcome, refusal } : this.#readThrown(this.#spent('in what it threw'));
  }

  #hasTime(): boolean {
    return this.#charge?.hasTime() ?? true;
  }

  #spent(where: string): Exhausted {
    return new Exhausted(`its ${this.#tap.budget} ms were spent ${where}`);
  }

  /** Nothing is charged any more. Plugins without a budget are reported only when they fail. */
  #end(outcome: CallEvent['outcome']): void {
    const { plugin, stage, options } = this.#tap;
    const budget = this.#budget;
    this.#charge?.end(stage);
    if (this.#onion !== undefined) endCall(this.#onion);
    if (budget === undefined && outcome === 'done') return;
    options.observer?.call?.({ exchange: this.#exchange, plugin, stage, budget, outcome });
  }
}
