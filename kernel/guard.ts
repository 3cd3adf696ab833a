import { type Budget, Charge, type ChargedCall, over } from './charge.ts';
import { control, type Exchange, type Flights } from './exchange.ts';
import type { Args, CallEvent, Guarded, Next, Observer, Place } from './hooks.ts';
import { asRefusal, errorForLog, refusals } from './refusal.ts';
import { type Contract, type Contracts, type Stage, stages, WrongShape } from './stages.ts';
import type { ApiResponse, Run } from './values.ts';

/** What the guard uses for all plugins alike. */
export interface GuardOptions {
  readonly contracts: Contracts;
  /** Called with every failure after which the request goes on. */
  readonly complain: (complaint: { plugin: string; stage: string; requestId: string; error: unknown }) => void;
  readonly observer?: Observer | undefined;
}

export type PluginFunction = (...args: unknown[]) => unknown;

/** A plugin's function at a stage, with its budget. */
export interface Tap extends Place {
  /** Milliseconds per request, or `none` if the plugin bounds its stages itself. */
  readonly budget: Budget;
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
type TapWithRow = Tap & { readonly [K in 'kind' | 'takes' | 'returns' | 'fails' | 'public']: Stage[K] } & {
  readonly contract: Contract;
};

/**
 * Wraps a plugin's function; nothing else does. The wrapper charges the budget, aborts the plugin's signal, checks the result,
 * applies the stage's failure policy and names the plugin in errors.
 */
export function guarded(tap: Tap): Guarded {
  // All taps have one shape, whatever their stages: reading from many shapes is slow.
  const { kind, takes, returns, fails, public: isPublic } = stages[tap.stage];
  const contract = tap.options.contracts.of(tap.stage);
  const own: TapWithRow = { ...tap, kind, takes, returns, fails, public: isPublic, contract };
  return (args, rest) => new Call(own, args, rest).result();
}

/**
 * One call of a plugin's function. The function's last argument is the plugin's charge; at an around stage it is this object,
 * which has the charge's signal, `exchange`, `next` and `share`.
 */
class Call {
  readonly #tap: TapWithRow;
  readonly #args: Args;
  readonly #exchange: Exchange;
  readonly #rest: Next | undefined;
  readonly #charge: Charge;
  readonly #entry: ChargedCall = { used: 0, waitsFor: 0, previous: undefined };
  /** The context that a public hook got. */
  #context: unknown;
  #hasAsked = false;

  /** @param rest of an around stage. */
  constructor(tap: TapWithRow, args: Args, rest: Next | undefined) {
    const { budget, kind, plugin } = tap;
    this.#tap = tap;
    this.#args = args;
    this.#rest = rest;
    this.#exchange = args[args.length - 1] as Exchange;
    // Plugins without a budget share a charge, which counts nothing.
    const payer = budget === 'none' ? '' : plugin;
    // Each watch hook gets the full budget again, whether the client left or not.
    this.#charge = kind === 'watch' ? new Charge(budget) : control.charge(this.#exchange, payer, budget);
  }

  get signal(): AbortSignal {
    return this.#charge.signal;
  }

  get exchange(): Exchange {
    return this.#exchange;
  }

  // `next` and `share` are getters of functions, so that plugins may take them apart: `(value, exchange, { next }) => …`.
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
      const tap = { ...this.#tap, fn: (_value: unknown, _exchange: unknown, call: unknown) => work(call) };
      const fly = (fork: Exchange) => new Call(tap, [this.#args[0], fork], this.#rest).result();
      return this.#uncharged(() => tap.flights.join(String(key), this.#exchange, fly));
    };
  }

  /** Returns the function's result: a promise only if the function returns one. @throws Refusal */
  result(): unknown {
    let result: unknown;
    try {
      const value = this.#call();
      if (isThenable(value)) return this.#follow(value);
      result = this.#accept(value);
    } catch (error) {
      return this.#fail(error);
    }
    return this.#succeed(result);
  }

  /** Waits for what the function has promised, at most until the budget ends. */
  async #follow(pending: PromiseLike<unknown>): Promise<unknown> {
    let result: unknown;
    try {
      result = this.#accept(await this.#charge.within(pending));
    } catch (error) {
      return this.#fail(error);
    }
    return this.#succeed(result);
  }

  #call(): unknown {
    const { fn, takes, contract, options, plugin, hidden, isBuiltin } = this.#tap;
    const args = this.#args;
    const charge = this.#charge;
    charge.begin(this.#entry);
    if (contract.context !== undefined) {
      this.#context = contract.context(args, charge, hidden, plugin);
      return fn(this.#context);
    }
    if (takes[0] === 'response' && !isBuiltin) options.contracts.protect(args[0] as ApiResponse);
    if (this.#rest !== undefined) return fn(...args, this);
    if (takes[0] === 'run') {
      const run = args[0] as Run;
      return fn((...detached: Parameters<Run>) => this.#uncharged(() => run(...detached)), this.#exchange, charge);
    }
    // Spreading the arguments would double the cost of most calls.
    return args.length === 2 ? fn(args[0], args[1], charge) : fn(...args, charge);
  }

  /** Ends the call with what the function returned: reading it may run an operator's code, in accessors and proxies. @throws Error */
  #accept(value: unknown): unknown {
    const { contract, plugin } = this.#tap;
    let result: unknown;
    if (value !== undefined) result = contract.accept?.(value, this.#args, plugin);
    else if (this.#rest !== undefined && this.#hasAsked)
      throw new WrongShape('returned nothing, after it had asked for the rest');
    if (contract.ended !== undefined) {
      this.#charge.requireTime();
      contract.ended(this.#context);
    }
    if (!this.#charge.end(this.#entry)) throw over();
    return result;
  }

  /** At an around stage, a function that returned nothing leaves the answer to the rest. @throws Refusal */
  #succeed(result: unknown): unknown {
    this.#tell('done');
    return result === undefined ? this.#rest?.(this.#args[0], this.#exchange) : result;
  }

  /** Ends the call with the stage's failure policy. @throws Refusal if fail-closed. */
  #fail(thrown: unknown): undefined {
    const error = thrown ?? new Error('threw nothing');
    const { plugin, stage, kind, budget, fails, public: isPublic, options } = this.#tap;
    const { requestId, abandoned } = this.#exchange;
    let outcome: CallEvent['outcome'] = 'done';
    // A public hook that throws a refusal drops the request, as with any error. At inner stages a thrown refusal is the answer,
    // and no failure.
    let refusal = asRefusal(isPublic ? errorForLog(error) : error, stage, (reason) => {
      // Aborted work fails when the client leaves, as with undici's `RequestAbortedError`: the plugin is not to blame.
      if (abandoned && kind !== 'watch' && /^\w*Abort\w*Error\b/.test(reason)) return refusals.abandoned();
      outcome = 'failed';
      return isPublic ? refusals.dropped(plugin, reason) : refusals.internal(`plugin "${plugin}": ${reason}`);
    });
    // Reading an error may run the plugin's code, too, and end its budget.
    if (!this.#charge.end(this.#entry)) {
      outcome = 'exhausted';
      const spent =
        this.#entry.used > 0 ? `its ${budget} ms were spent in the call` : 'its budget was spent before the call';
      refusal = asRefusal(refusals.exhausted(plugin, spent), stage);
    }
    this.#tell(outcome);
    if (fails !== 'open') throw refusal;
    if (kind === 'watch' || !abandoned)
      options.complain({ plugin, stage, requestId, error: outcome === 'exhausted' ? refusal : error });
    return undefined;
  }

  /** Reports the call: that of a built-in, or without a budget, only if it failed. */
  #tell(outcome: CallEvent['outcome']): void {
    const { plugin, stage, budget, isBuiltin, options } = this.#tap;
    if (outcome === 'done' && (isBuiltin || budget === 'none')) return;
    const charge = budget === 'none' ? undefined : this.#charge;
    const { used: milliseconds } = this.#entry;
    options.observer?.call?.({ exchange: this.#exchange, plugin, stage, milliseconds, charge, outcome });
  }

  /** Does work whose time is not charged. The plugin may ignore the promise, so its rejection is marked as handled. */
  #uncharged<T>(work: () => Promise<T>): Promise<T> {
    this.#hasAsked = true;
    // A mode may do its work after its call, while its body streams; functions of around stages may not.
    const isLate = this.#entry.waitsFor === Number.POSITIVE_INFINITY && this.#rest !== undefined;
    const working = isLate
      ? Promise.reject<T>(new Error('the call has ended'))
      : this.#charge.uncharged(work, this.#entry);
    working.catch(() => undefined);
    return working;
  }
}

/** Whether `await` would wait for the value. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
