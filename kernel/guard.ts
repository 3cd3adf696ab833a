import { Charge } from './charge.ts';
import { control, type Exchange, type Flights } from './exchange.ts';
import type { Args, CallEvent, Next, Observer, Tapped, Wrapper } from './hooks.ts';
import { asRefusal, errorForLog, refusals } from './refusal.ts';
import { type Contract, type Contracts, type Stage, type StageName, stageOf, WrongShape } from './stages.ts';
import type { ApiResponse, CallContext } from './values.ts';

/** What the guard uses for all plugins alike. */
export interface GuardOptions {
  readonly contracts: Contracts;
  /** Called with every failure after which the request goes on. */
  readonly complain: (complaint: { plugin: string; stage: string; requestId: string; error: unknown }) => void;
  readonly observer?: Observer | undefined;
}

export type PluginFunction = (...args: unknown[]) => unknown;

/** A plugin's function at a stage, with its budget. */
export interface Tap {
  readonly stage: StageName;
  readonly plugin: string;
  /** Milliseconds per request, or `none` if the plugin bounds its stages itself. */
  readonly budget: number | 'none';
  /** Whether the plugin is a built-in, which is trusted not to change its arguments. */
  readonly isBuiltin: boolean;
  /** Lower-case names of request headers that carry credentials of other plugins. */
  readonly hidden: ReadonlySet<string>;
  readonly fn: PluginFunction;
  /** Work that requests share; at around stages only. */
  readonly flights: Flights;
  readonly options: GuardOptions;
}

/** A tap with its stage's row and contract, looked up once. */
type Guarded = Tap & Stage & { readonly contract: Contract };

/**
 * Wraps a plugin's function; nothing else does. The wrapper charges the budget, aborts the plugin's signal, checks the result,
 * applies the stage's failure policy and names the plugin in errors.
 * @returns a function that gives a result, `undefined` or a refusal: to its callback or, at an around stage, by its promise.
 */
export function guarded(tap: Tap): Tapped | Wrapper {
  const contract = tap.options.contracts.of(tap.stage);
  const own: Guarded = { ...stageOf(tap.stage), ...tap, contract };
  if (own.kind === 'around')
    return ((rest) => (value, exchange, core) =>
      new Call(own, [value, exchange], (given, asking) => rest(given, asking, core)).run()) as Wrapper;
  // A public hook needs a context, and a mode a `run` that stops its time.
  const isDirect = own.isBuiltin && own.kind !== 'watch' && own.takes[0] !== 'run' && !own.public;
  return (value, args, done) => {
    const given = value === args[0] ? args : args.with(0, value);
    const result = isDirect ? callDirectly(own, given) : new Call(own, given).run();
    if (result instanceof Promise) result.then((answer) => done(null, answer), done);
    else done(null, result);
  };
}

/** Calls a built-in's function. If it returns no promise, as most do, the guard costs just two readings of the clock. */
function callDirectly(tap: Guarded, args: Args): unknown {
  const { budget, plugin, fn, contract } = tap;
  const exchange = args.at(-1) as Exchange;
  const charge = budget === 'none' ? undefined : control.charge(exchange, plugin, budget);
  if (charge?.chargeTime() === false) return new Call(tap, args).run();
  const left = charge?.remaining;
  try {
    const call = charge ?? exchange;
    // Spreading the arguments would double the cost of this function.
    const result = args.length === 2 ? fn(args[0], args[1], call) : fn(...args, call);
    if (!(result instanceof Promise)) {
      const accepted = result === undefined ? undefined : contract.accept?.(result, args, plugin);
      // `true`, since no call was begun.
      if (charge === undefined || charge.chargeTime(true)) return accepted;
    }
    return new Call(tap, args).run(() => result, left);
  } catch (error) {
    return new Call(tap, args).run(() => {
      throw error;
    }, left);
  }
}

/**
 * One call of a plugin's function. At an around stage the function gets this object as its last argument, for `signal`,
 * `exchange`, `next` and `share`. Other functions get an object with the signal: their charge or, without a budget, the exchange.
 */
class Call {
  readonly #tap: Guarded;
  readonly #args: Args;
  readonly #exchange: Exchange;
  readonly #rest: Next | undefined;
  /** Each watch hook gets the full budget again, whether the client left or not. */
  readonly #charge: Charge | undefined;
  #begun: number | undefined;
  /** The context that a public hook got. */
  #context: unknown;
  /** How much uncharged work is under way. */
  #pauses = 0;
  #hasAsked = false;
  #isOver = false;

  /** @param rest of an around stage. */
  constructor(tap: Guarded, args: Args, rest?: Next) {
    const { budget, kind, plugin } = tap;
    this.#tap = tap;
    this.#args = args;
    this.#rest = rest;
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
        const { contract, returns, isBuiltin, options } = this.#tap;
        const asked = given === undefined ? this.#args[0] : contract.input?.(given, this.#args);
        const result = await this.#rest?.(asked, this.#exchange);
        if (returns === 'response' && !isBuiltin) options.contracts.protect(result as ApiResponse);
        return result;
      });
  }

  get share() {
    return (key: string, work: PluginFunction) => {
      const tap = { ...this.#tap, fn: (_: unknown, __: unknown, call: unknown) => work(call) };
      const fly = (fork: Exchange) => new Call(tap, [this.#args[0], fork], this.#rest).run();
      return this.#uncharged(() => tap.flights.join(String(key), this.#exchange, fly));
    };
  }

  /** The holder of the function's signal. At a watch stage a client that leaves does not abort it. */
  get #callContext(): CallContext {
    return this.#charge ?? (this.#tap.kind === 'watch' ? new AbortController() : this.#exchange);
  }

  /** Runs the call. @param replay if it was called already: does what it did. @param left before that. @throws Refusal */
  async run(replay?: () => unknown, left?: number): Promise<unknown> {
    const { contract, plugin } = this.#tap;
    let phase = '';
    let result: unknown;
    try {
      if (replay === undefined) this.#requireTime();
      this.#begun = this.#charge?.begin(left);
      phase = 'in the call';
      let value = replay === undefined ? this.#call() : replay();
      if (isThenable(value)) value = await (this.#charge?.within(value) ?? value);
      this.#requireTime();
      // Reading a result may run the plugin's code, in accessors and proxies.
      phase = 'in what it returned';
      contract.ended?.(this.#context);
      if (value !== undefined) result = contract.accept?.(value, this.#args, plugin);
      else if (this.#rest !== undefined && this.#hasAsked)
        throw new WrongShape('returned nothing, after it had asked for the rest');
      this.#requireTime();
    } catch (error) {
      return this.#failed(error ?? new Error('threw nothing'), phase);
    }
    this.#end('done');
    // A function of an around stage that returns nothing leaves the answer to the next one.
    return result === undefined ? this.#rest?.(this.#args[0], this.#exchange) : result;
  }

  #requireTime(): void {
    if (this.#charge?.chargeTime() === false) throw new Error('the budget has ended');
  }

  #call(): unknown {
    const { fn, takes, contract, options, plugin, hidden, isBuiltin } = this.#tap;
    const args = this.#args;
    if (contract.context !== undefined) {
      this.#context = contract.context(args, this.#callContext, hidden, plugin);
      return fn(this.#context);
    }
    if (takes[0] === 'response' && !isBuiltin) options.contracts.protect(args[0] as ApiResponse);
    if (this.#rest !== undefined) return fn(...args, this);
    // A function among the arguments is a mode's `run`. Its time is not charged to the plugin.
    const pausing = (arg: unknown) =>
      typeof arg === 'function' ? (...given: unknown[]) => this.#uncharged(() => arg(...given)) : arg;
    return fn(...args.map(pausing), this.#callContext);
  }

  /** Applies the failure policy. @param phase of the call, for the text; '' before it. @throws Refusal if fail-closed. */
  #failed(error: unknown, phase: string): undefined {
    const { plugin, stage, kind, budget, fails, public: isPublic, options } = this.#tap;
    const { requestId, abandoned } = this.#exchange;
    const charge = this.#charge;
    let outcome: CallEvent['outcome'] = 'done';
    const place = charge?.chargeTime() === false ? phase : 'in what it threw';
    const spent = place === '' ? 'its budget was spent before the call' : `its ${budget} ms were spent ${place}`;
    // A public hook that throws a refusal drops the request, as with any error. At inner stages a thrown refusal is the answer.
    let refusal = asRefusal(isPublic ? errorForLog(error) : error, stage, (reason) => {
      // Aborted work fails when the client leaves, as with undici's `RequestAbortedError`: the plugin is not to blame.
      if (abandoned && kind !== 'watch' && /^\w*Abort\w*Error\b/.test(reason)) return refusals.abandoned();
      outcome = 'failed';
      return isPublic ? refusals.dropped(plugin, reason) : refusals.internal(`plugin "${plugin}": ${reason}`);
    });
    // Reading an error may run the plugin's code, too, and end its budget.
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

  /** Ends the call. Calls of built-ins, and of plugins without a budget, are reported only when they fail. */
  #end(outcome: CallEvent['outcome']): void {
    const { plugin, stage, isBuiltin, options } = this.#tap;
    const charge = this.#charge;
    this.#isOver = true;
    if (this.#pauses > 0) charge?.resume();
    const milliseconds = this.#begun === undefined ? 0 : (charge?.end(this.#begun) ?? 0);
    if (outcome === 'done' && (isBuiltin || charge === undefined)) return;
    options.observer?.call?.({ exchange: this.#exchange, plugin, stage, milliseconds, charge, outcome });
  }

  /** Does work whose time is not charged. The plugin may ignore the promise, so its rejection is marked as handled. */
  #uncharged<T>(work: () => Promise<T>): Promise<T> {
    this.#hasAsked = true;
    const working = this.#paused(work);
    working.catch(() => undefined);
    return working;
  }

  async #paused<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isOver && this.#rest !== undefined) throw new Error('the call has ended');
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

/** Whether `await` would wait for the value. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
