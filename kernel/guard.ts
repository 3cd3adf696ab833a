import { types } from 'node:util';
import { Charge } from './charge.ts';
import { control, type Exchange, type Flights } from './exchange.ts';
import type { CallEvent, Inner, Observer, Tapped, Wrapping } from './hooks.ts';
import { asRefusal, errorForLog, type Refusal, refusals } from './refusal.ts';
import {
  type Contract,
  type Contracts,
  type Hidden,
  type Stage,
  type StageName,
  stageOf,
  WrongShape,
} from './stages.ts';
import type { ApiResponse, CallContext } from './values.ts';

/** What the guard has for all plugins alike. */
export interface GuardOptions {
  readonly contracts: Contracts;
  /** Told of every failure after which a request goes on. */
  readonly complain: (complaint: { plugin: string; stage: string; requestId: string; error: unknown }) => void;
  /** May get its members later, when every plugin is registered. */
  readonly observer?: Observer | undefined;
}

export type PluginFunction = (...args: unknown[]) => unknown;
type Args = readonly unknown[];

/** A function of a plugin at a stage, and with how much time it is called. */
export interface Tap {
  readonly stage: StageName;
  readonly plugin: string;
  /** Milliseconds per request, or none: the plugin bounds its own stages. */
  readonly budget: number | 'none';
  /** Whether it is the service's own, which changes nothing of what it gets. */
  readonly isTrusted: boolean;
  /** Headers that it must not see; complete once every plugin is registered. */
  readonly hidden: Hidden;
  readonly fn: PluginFunction;
  /** What requests share of it; in an onion only. */
  readonly flights: Flights;
  readonly options: GuardOptions;
}

/** The same, and all that is known of it before it is called. */
interface Guarded extends Tap, Stage {
  readonly contract: Contract;
}

/**
 * The only wrapper round a plugin's function. It charges the budget, aborts the plugin's signal, reads what comes back,
 * applies the stage's failure policy and names the culprit.
 * @returns a function that answers, or has nothing to say, or refuses, and never throws.
 */
export function guarded(tap: Tap): Tapped | Wrapping {
  const contract = tap.options.contracts.of(tap.stage);
  const own: Guarded = { ...stageOf(tap.stage), ...tap, contract };
  const wrap: Wrapping = (rest) => (value, exchange, innermost) =>
    new Call(own, [value, exchange], (given, on) => rest(given, on, innermost)).run();
  if (own.kind === 'around') return wrap;
  const isPlain = own.isTrusted && own.kind !== 'watch' && !own.takes.includes('run') && contract.context === undefined;
  const ask: Tapped = (first, second, exchange, done) => {
    let result: unknown;
    try {
      if (isPlain) result = plainly(own, first, second, exchange);
      else result = new Call(own, argsOf(own, first, second, exchange)).run();
    } catch (refusal) {
      return done(refusal);
    }
    if (result instanceof Promise) result.then((value) => done(null, value), done);
    else done(null, result);
  };
  return ask;
}

function argsOf({ takes: { length } }: Guarded, first: unknown, second: unknown, exchange: Exchange): Args {
  if (length === 0) return [exchange];
  return length === 1 ? [first, exchange] : [first, second, exchange];
}

/** Watch hooks run after the answer, so each gets the full budget again, whether the client left or not. */
function chargeOf({ plugin, budget, kind }: Guarded, exchange: Exchange): Charge | undefined {
  if (budget === 'none') return undefined;
  if (kind === 'watch') return new Charge(budget);
  const charges = control.charges(exchange);
  let charge = charges.get(plugin);
  if (charge === undefined) {
    charge = new Charge(budget, exchange);
    charges.set(plugin, charge);
  }
  return charge;
}

/** Calls a function of the service's own: what it answers at once, as most do, costs two looks at the clock. @throws Refusal */
function plainly(tap: Guarded, first: unknown, second: unknown, exchange: Exchange): unknown {
  const { fn, takes, contract, plugin } = tap;
  const charge = chargeOf(tap, exchange);
  if (charge?.exhausted) return new Call(tap, argsOf(tap, first, second, exchange)).run();
  const begun = charge?.begin();
  const call = charge ?? exchange;
  let result: unknown;
  let failure: unknown;
  try {
    if (takes.length === 0) result = fn(exchange, call);
    else result = takes.length === 1 ? fn(first, exchange, call) : fn(first, second, exchange, call);
    const pending = promiseOf(result);
    if (pending !== undefined)
      return new Call(tap, argsOf(tap, first, second, exchange), undefined, begun).waited(pending);
    if (result !== undefined) result = contract.accept?.(result, argsOf(tap, first, second, exchange), plugin);
  } catch (error) {
    failure = error ?? NOTHING;
  }
  if (failure !== undefined || charge?.hasTime() === false)
    return new Call(tap, argsOf(tap, first, second, exchange), undefined, begun).failed(failure, IN_CALL);
  ended(tap, exchange, 'done', begun, charge);
  return result;
}

/** Nothing is charged any more. The service's own plugins, and those without a budget, are reported only when they fail. */
function ended(tap: Guarded, exchange: Exchange, outcome: CallEvent['outcome'], begun?: number, budget?: Charge): void {
  const { plugin, stage, isTrusted, options } = tap;
  const milliseconds = begun === undefined ? 0 : (budget?.end(begun) ?? 0);
  if (outcome === 'done' && (isTrusted || budget === undefined)) return;
  options.observer?.call?.({ exchange, plugin, stage, milliseconds, budget, outcome });
}

const NOTHING = new Error('threw nothing');
const IN_CALL = 'in the call';

/** One call of a plugin's function, from its arguments to what it comes to. A function of an onion gets it beside them. */
class Call {
  readonly #tap: Guarded;
  readonly #args: Args;
  readonly #exchange: Exchange;
  readonly #inner: Inner | undefined;
  readonly #charge: Charge | undefined;
  #begun: number | undefined;
  /** What a public hook got. */
  #context: unknown;
  /** Pieces of work under way that are charged to nobody. */
  #pauses = 0;
  #hasAsked = false;
  #isOver = false;

  /** @param inner the rest of the onion. @param begun of one that has begun. */
  constructor(tap: Guarded, args: Args, inner?: Inner, begun?: number) {
    this.#tap = tap;
    this.#args = args;
    this.#inner = inner;
    this.#exchange = args[args.length - 1] as Exchange;
    this.#charge = chargeOf(tap, this.#exchange);
    this.#begun = begun;
  }

  get signal(): AbortSignal {
    return this.#given.signal;
  }

  get exchange(): Exchange {
    return this.#exchange;
  }

  get next() {
    const { contract, returns, isTrusted, options } = this.#tap;
    return (given?: unknown) =>
      this.#uncharged(async () => {
        const asked = given === undefined ? this.#args[0] : contract.input?.(given, this.#args);
        const result = await this.#inner?.(asked, this.#exchange);
        if (returns === 'response' && !isTrusted) options.contracts.protect(result as ApiResponse);
        return result;
      });
  }

  get share() {
    return (key: string, work: PluginFunction) => {
      const tap = { ...this.#tap, fn: (_: unknown, __: unknown, flight: unknown) => work(flight) };
      const fly = (fork: Exchange) => new Call(tap, [this.#args[0], fork], this.#inner).run();
      return this.#uncharged(() => tap.flights.join(String(key), this.#exchange, fly));
    };
  }

  /** What tells it to stop. Those who watch go on when the client leaves. */
  get #given(): CallContext {
    return this.#charge ?? (this.#tap.kind === 'watch' ? new AbortController() : this.#exchange);
  }

  /** @throws Refusal */
  run(): unknown {
    if (this.#charge?.exhausted) return this.failed(undefined, undefined);
    this.#begun = this.#charge?.begin();
    let returned: unknown;
    let pending: Promise<unknown> | undefined;
    try {
      returned = this.#call();
      pending = promiseOf(returned);
    } catch (error) {
      return this.failed(error ?? NOTHING, IN_CALL);
    }
    return pending === undefined ? this.#returned(returned) : this.waited(pending);
  }

  #call(): unknown {
    const { fn, takes, contract, options, plugin, hidden, isTrusted } = this.#tap;
    const args = this.#args;
    if (contract.context !== undefined) {
      this.#context = contract.context(args, this.#given, hidden, plugin);
      return fn(this.#context);
    }
    if (takes[0] === 'response' && !isTrusted) options.contracts.protect(args[0] as ApiResponse);
    if (this.#inner !== undefined) return fn(...args, this);
    if (this.#charge === undefined) return fn(...args, this.#given);
    // A function among the arguments runs the rest of the pipeline.
    const rest = (arg: unknown) =>
      typeof arg === 'function' ? (...given: unknown[]) => this.#uncharged(async () => arg(...given)) : arg;
    return fn(...args.map(rest), this.#charge);
  }

  /** @throws Refusal */
  async waited(pending: Promise<unknown>): Promise<unknown> {
    let returned: unknown;
    try {
      // Whatever the function does after its budget ended lands nowhere.
      returned = await (this.#charge?.within(pending) ?? pending);
    } catch (error) {
      return this.failed(error ?? new Error('rejected with nothing'), IN_CALL);
    }
    return this.#returned(returned);
  }

  /** Reading what came back may run the plugin's code, in accessors and proxies. `undefined` means nothing to say. */
  #returned(value: unknown): unknown {
    if (!this.#hasTime()) return this.failed(undefined, IN_CALL);
    const { contract, plugin, isTrusted } = this.#tap;
    let result: unknown;
    try {
      contract.ended?.(this.#context, this.#args, plugin);
      if (value !== undefined) result = contract.accept?.(value, this.#args, plugin);
      else if (this.#inner !== undefined && this.#hasAsked)
        throw new WrongShape('returned nothing, after it had asked for the rest');
      if (value !== undefined && !isTrusted && !this.#hasTime()) throw NOTHING;
    } catch (error) {
      return this.failed(error ?? NOTHING, 'in what it returned');
    }
    this.#end('done');
    // A function that has nothing to say leaves the answer to the next one.
    return result === undefined ? this.#inner?.(this.#args[0], this.#exchange) : result;
  }

  /** @param where time may have run out meanwhile; absent where it had before. @throws Refusal, unless the stage goes on without what failed. */
  failed(error: unknown, where: string | undefined): undefined {
    const { plugin, stage, budget, fails, contract, options } = this.#tap;
    let outcome: CallEvent['outcome'] = 'exhausted';
    let spent = where === undefined ? 'its budget was spent before the call' : `its ${budget} ms were spent ${where}`;
    let refusal: Refusal | undefined;
    if (this.#hasTime()) {
      outcome = 'done';
      // In a public hook a refusal is a drop like any other failure; what an inner stage refuses is what its plugin has to say.
      const isPublic = contract.context !== undefined;
      refusal = asRefusal(isPublic ? errorForLog(error) : error, stage, (reason) => {
        outcome = 'failed';
        return isPublic ? refusals.dropped(plugin, reason) : refusals.internal(`plugin "${plugin}": ${reason}`);
      });
      // Reading what was thrown may run the plugin's code, too.
      spent = `its ${budget} ms were spent in what it threw`;
    }
    if (refusal === undefined || !this.#hasTime()) {
      outcome = 'exhausted';
      refusal = asRefusal(refusals.exhausted(plugin, spent), stage);
    }
    this.#end(outcome);
    if (fails !== 'open') throw refusal;
    const { requestId } = this.#exchange;
    options.complain({ plugin, stage, requestId, error: outcome === 'exhausted' ? refusal : error });
    return undefined;
  }

  #hasTime(): boolean {
    return this.#charge?.hasTime() ?? true;
  }

  #end(outcome: CallEvent['outcome']): void {
    this.#isOver = true;
    if (this.#pauses > 0) this.#charge?.resume(1);
    ended(this.#tap, this.#exchange, outcome, this.#begun, this.#charge);
  }

  /** Does work that takes none of the budget's time. */
  #uncharged<T>(work: () => Promise<T>): Promise<T> {
    this.#hasAsked = true;
    const working = this.#paused(work);
    // The plugin may not wait for it.
    working.catch(() => undefined);
    return working;
  }

  async #paused<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isOver && this.#inner !== undefined) throw new Error('the call has ended');
    this.#pauses += 1;
    if (this.#pauses === 1 && !this.#isOver) this.#charge?.resume(-1);
    try {
      if (this.#charge?.exhausted) throw new Error('the budget has ended');
      return await work();
    } finally {
      this.#pauses -= 1;
      if (this.#pauses === 0 && !this.#isOver) this.#charge?.resume(1);
    }
  }
}

const { then } = Promise.prototype;

/** The promise of what a call returned, if it did return one. Only those of JavaScript itself are used as they are. */
function promiseOf(value: unknown): Promise<unknown> | undefined {
  if (typeof value !== 'object' || value === null || !('then' in value) || typeof value.then !== 'function')
    return undefined;
  return types.isPromise(value) && value.then === then ? value : new Promise((resolve) => resolve(value));
}
