import { Charge } from './charge.ts';
import { control, type Exchange, type Flights } from './exchange.ts';
import type { Args, CallEvent, Inner, Observer, Tapped, Wrapping } from './hooks.ts';
import { asRefusal, errorForLog, refusals } from './refusal.ts';
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
  readonly observer?: Observer | undefined;
}

export type PluginFunction = (...args: unknown[]) => unknown;

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
type Guarded = Tap & Stage & { readonly contract: Contract };

/**
 * The only wrapper round a plugin's function. It charges the budget, aborts the plugin's signal, reads what comes back,
 * applies the stage's failure policy and names the culprit.
 * @returns a function that answers, or has nothing to say, or refuses, and never throws.
 */
export function guarded(tap: Tap): Tapped | Wrapping {
  const contract = tap.options.contracts.of(tap.stage);
  const own: Guarded = { ...stageOf(tap.stage), ...tap, contract };
  if (own.kind === 'around')
    return ((rest) => (value, exchange, innermost) =>
      new Call(own, [value, exchange], (asked, fork) => rest(asked, fork, innermost)).run()) as Wrapping;
  const runsTheRest = own.takes[0] === 'run';
  const isPlain = own.isTrusted && own.kind !== 'watch' && !runsTheRest && !own.context;
  return (value, args, done) => {
    const given = value === args[0] ? args : args.with(0, value);
    const result = isPlain ? plainly(own, given) : new Call(own, given).run();
    if (result instanceof Promise) result.then((answer) => done(null, answer), done);
    else done(null, result);
  };
}

/** Calls a function of the service's own: what it answers at once, as most do, costs two looks at the clock. */
function plainly(tap: Guarded, args: Args): unknown {
  const { budget, plugin, fn, contract } = tap;
  const exchange = args.at(-1) as Exchange;
  const charge = budget === 'none' ? undefined : control.charge(exchange, plugin, budget);
  if (charge?.chargeTime() === false) return new Call(tap, args).run();
  try {
    const call = charge ?? exchange;
    // Spreading costs as much as the rest of this.
    const result = args.length === 2 ? fn(args[0], args[1], call) : fn(...args, call);
    if (!(result instanceof Promise)) {
      const accepted = result === undefined ? undefined : contract.accept?.(result, args, plugin);
      if (charge === undefined || charge.chargeTime(true)) return accepted;
    }
    return new Call(tap, args).run(() => result);
  } catch (error) {
    return new Call(tap, args).run(() => {
      throw error;
    });
  }
}

/**
 * One call of a plugin's function, from its arguments to what it comes to. A function of an onion gets it as its last argument, for
 * `signal`, `exchange`, `next` and `share`. Others get what has the signal: their charge, or the exchange where there is no budget.
 */
class Call {
  readonly #tap: Guarded;
  readonly #args: Args;
  readonly #exchange: Exchange;
  readonly #inner: Inner | undefined;
  /** Each watch hook gets the full budget again, whether the client left or not. */
  readonly #charge: Charge | undefined;
  #begun: number | undefined;
  /** What a public hook got. */
  #context: unknown;
  /** Uncharged work under way. */
  #pauses = 0;
  #hasAsked = false;
  #isOver = false;

  /** @param inner the rest of the onion. */
  constructor(tap: Guarded, args: Args, inner?: Inner) {
    const { budget, kind, plugin } = tap;
    this.#tap = tap;
    this.#args = args;
    this.#inner = inner;
    this.#exchange = args.at(-1) as Exchange;
    if (budget !== 'none')
      this.#charge = kind === 'watch' ? new Charge(budget) : control.charge(this.#exchange, plugin, budget);
  }

  get signal(): AbortSignal {
    return this.#callContext.signal;
  }

  get exchange(): Exchange {
    return this.#exchange;
  }

  get next() {
    return (given?: unknown) =>
      this.#uncharged(async () => {
        const { contract, returns, isTrusted, options } = this.#tap;
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
  get #callContext(): CallContext {
    return this.#charge ?? (this.#tap.kind === 'watch' ? new AbortController() : this.#exchange);
  }

  /** @param called gives what the function returned or threw, where it was called already. @throws Refusal */
  async run(called?: () => unknown): Promise<unknown> {
    const { contract, plugin } = this.#tap;
    let where = '';
    let result: unknown;
    try {
      if (called === undefined) this.#requireTime();
      else this.#charge?.chargeTime(true);
      this.#begun = this.#charge?.begin();
      where = 'in the call';
      let value = called === undefined ? this.#call() : called();
      if (isThenable(value)) value = await (this.#charge?.within(value) ?? value);
      this.#requireTime();
      // Reading what came back may run the plugin's code, in accessors and proxies.
      where = 'in what it returned';
      contract.ended?.(this.#context, this.#args, plugin);
      if (value !== undefined) result = contract.accept?.(value, this.#args, plugin);
      else if (this.#inner !== undefined && this.#hasAsked)
        throw new WrongShape('returned nothing, after it had asked for the rest');
      this.#requireTime();
    } catch (error) {
      return this.#failed(error ?? new Error('threw nothing'), where);
    }
    this.#end('done');
    // A function that has nothing to say leaves the answer to the next one.
    return result === undefined ? this.#inner?.(this.#args[0], this.#exchange) : result;
  }

  #requireTime(): void {
    if (this.#charge?.chargeTime() === false) throw new Error('the budget has ended');
  }

  #call(): unknown {
    const { fn, takes, contract, options, plugin, hidden, isTrusted } = this.#tap;
    const args = this.#args;
    if (contract.context !== undefined) {
      this.#context = contract.context(args, this.#callContext, hidden, plugin);
      return fn(this.#context);
    }
    if (takes[0] === 'response' && !isTrusted) options.contracts.protect(args[0] as ApiResponse);
    if (this.#inner !== undefined) return fn(...args, this);
    // A function among the arguments runs the rest of the pipeline.
    const pausing = (arg: unknown) =>
      typeof arg === 'function' ? (...given: unknown[]) => this.#uncharged(() => arg(...given)) : arg;
    return fn(...args.map(pausing), this.#callContext);
  }

  /** @param where the time may have run out meanwhile; empty where it had before the call. @throws Refusal, unless the stage goes on without what failed. */
  #failed(error: unknown, where: string): undefined {
    const { plugin, stage, kind, budget, fails, context: isPublic, options } = this.#tap;
    const { requestId, abandoned } = this.#exchange;
    const charge = this.#charge;
    let outcome: CallEvent['outcome'] = 'done';
    const place = charge?.chargeTime() === false ? where : 'in what it threw';
    const spent = place === '' ? 'its budget was spent before the call' : `its ${budget} ms were spent ${place}`;
    // In a public hook a refusal is a drop like any other failure; what an inner stage refuses is what its plugin has to say.
    let refusal = asRefusal(isPublic ? errorForLog(error) : error, stage, (reason) => {
      // What heeds its signal fails when the client leaves, such as with undici's `RequestAbortedError`: the plugin is not to blame.
      if (abandoned && kind !== 'watch' && /^\w*Abort\w*Error\b/.test(reason)) return refusals.abandoned();
      outcome = 'failed';
      return isPublic ? refusals.dropped(plugin, reason) : refusals.internal(`plugin "${plugin}": ${reason}`);
    });
    // Reading what was thrown may run the plugin's code, too.
    if (charge?.chargeTime() === false) {
      outcome = 'exhausted';
      refusal = asRefusal(refusals.exhausted(plugin, spent), stage);
    }
    this.#end(outcome);
    if (fails !== 'open') throw refusal;
    if (kind === 'watch' || !abandoned)
      options.complain({ plugin, stage, requestId, error: outcome === 'exhausted' ? refusal : error });
    return undefined;
  }

  /** The service's own plugins, and those without a budget, are reported only when they fail. */
  #end(outcome: CallEvent['outcome']): void {
    const { plugin, stage, isTrusted, options } = this.#tap;
    const budget = this.#charge;
    this.#isOver = true;
    if (this.#pauses > 0) budget?.resume();
    const milliseconds = this.#begun === undefined ? 0 : (budget?.end(this.#begun) ?? 0);
    if (outcome === 'done' && (isTrusted || budget === undefined)) return;
    options.observer?.call?.({ exchange: this.#exchange, plugin, stage, milliseconds, budget, outcome });
  }

  /** Does work that takes none of the budget's time. The plugin may not wait for it. */
  #uncharged<T>(work: () => Promise<T>): Promise<T> {
    this.#hasAsked = true;
    const working = this.#paused(work);
    working.catch(() => undefined);
    return working;
  }

  async #paused<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isOver && this.#inner !== undefined) throw new Error('the call has ended');
    this.#pauses += 1;
    if (this.#pauses === 1 && !this.#isOver) this.#charge?.pause();
    try {
      this.#requireTime();
      return await work();
    } finally {
      this.#pauses -= 1;
      if (this.#pauses === 0 && !this.#isOver) this.#charge?.resume();
    }
  }
}

/** Whether JavaScript waits for it. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
