import type { Exchange } from './exchange.ts';
import { type Call, Ledger, Stopwatch } from './ledger.ts';
import type { CallEvent, Observer } from './observer.ts';
import { describe, isRefusal, type Refusal, refusals } from './refusal.ts';
import {
  type Adapters,
  failure,
  type PublicStage,
  type Reply,
  type Shapes,
  type StageName,
  WrongShape,
} from './stages.ts';

/** Who is called and with how much time: what the guard knows of a plugin. */
export interface Guarded {
  readonly plugin: string;
  /** Milliseconds per request, or none: the plugin bounds its own stages. */
  readonly budget: number | 'none';
}

/** Told of every failure of a plugin's function, with the plugin and the stage. */
export type Complain = (complaint: { plugin: string; stage: string; requestId: string; error: unknown }) => void;

type Done = (error: unknown, result?: unknown) => void;
type AnyFunction = (...args: unknown[]) => unknown;

/** Watching happens after the fact: it gets a fresh allowance, whether the budget is spent or the client gone. */
const observers: ReadonlySet<string> = new Set(['settle', 'store', 'onResponseSent', 'onError']);

/** For observers without a budget. */
const unhurried: Call = Object.freeze({
  get signal() {
    return new AbortController().signal;
  },
});

function ledgerFor({ plugin, budget }: Guarded, stage: string, exchange: Exchange): Ledger | undefined {
  if (budget === 'none') return undefined;
  if (observers.has(stage)) return new Ledger(budget);
  const known = exchange.ledgers.get(plugin);
  if (known !== undefined) return known;
  const ledger = new Ledger(budget, exchange);
  exchange.ledgers.set(plugin, ledger);
  return ledger;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** Time inside the rest of the pipeline is charged to nobody. */
function unclocked(value: unknown, watch: Stopwatch): unknown {
  if (typeof value !== 'function') return value;
  return (...args: unknown[]) => {
    watch.pause();
    const run = async () => {
      if (watch.exhausted) throw new Error('the budget has ended');
      return value(...args);
    };
    const work = run().finally(() => watch.resume());
    // The plugin may not wait for it.
    work.catch(() => undefined);
    return work;
  };
}

/** A budget ended; the guard's own, so that no plugin can throw it, nor be asked whether it did. */
class Exhausted extends Error {
  readonly #own = true;

  static is(error: unknown): error is Exhausted {
    return typeof error === 'object' && error !== null && #own in error;
  }
}

/**
 * Calls a plugin's function inside its budget and calls `done` exactly once: synchronously if the function is. Whatever
 * the function does after its budget ended lands nowhere.
 */
function invoke(stage: string, ledger: Ledger | undefined, call: (watch?: Stopwatch) => unknown, done: Done): void {
  if (ledger === undefined) {
    settle(call, done);
    return;
  }
  if (ledger.exhausted) {
    done(new Exhausted('its budget was spent before the call'));
    return;
  }
  let open = true;
  const finish: Done = (error, result) => {
    if (!open) return;
    open = false;
    watch.stop();
    if (ledger.exhausted) done(new Exhausted(`its ${ledger.budget} ms were spent in the call`));
    else done(error, result);
  };
  const watch = new Stopwatch(ledger, stage, () => finish(undefined));
  settle(
    () => call(watch),
    finish,
    () => watch.arm(),
  );
}

/** Calls `done` with the outcome of `call`, at once unless it is a promise; `onPending` tells that it is one. */
function settle(call: () => unknown, done: Done, onPending?: () => void): void {
  let result: unknown;
  let pending: Promise<unknown> | undefined;
  try {
    result = call();
    // Resolved with it, also a promise: its own `then` may not be that of promises.
    pending = isThenable(result) ? new Promise((resolve) => resolve(result)) : undefined;
  } catch (error) {
    done(error ?? new Error('threw nothing'));
    return;
  }
  if (pending === undefined) {
    done(undefined, result);
    return;
  }
  onPending?.();
  pending.then(
    (value) => done(undefined, value),
    (error) => done(error ?? new Error('rejected with nothing')),
  );
}

function refusalFor({ plugin }: Guarded, error: unknown, drop: boolean): Refusal {
  if (Exhausted.is(error)) return refusals.exhausted(plugin, error.message);
  if (!drop && isRefusal(error)) return error;
  const reason = describe(error);
  return drop ? refusals.dropped(plugin, reason) : refusals.internal(`plugin "${plugin}": ${reason}`);
}

/** What an inner stage refuses is what its plugin has to say, and no failure of it. */
function outcomeOf(error: unknown, drop: boolean): CallEvent['outcome'] {
  if (Exhausted.is(error)) return 'exhausted';
  return !drop && isRefusal(error) ? 'done' : 'failed';
}

/** Of plugins without a budget only failures are worth a word. */
function tell({ observer }: House, event: CallEvent): void {
  if (event.ledger !== undefined || event.outcome !== 'done') observer.call?.(event);
}

/** How functions of public stages are spoken to, and what they must not see. */
export interface House {
  readonly adapters: Adapters;
  readonly shapes: Shapes;
  /** Lower-case names of request headers that carry credentials. */
  readonly hidden: ReadonlySet<string>;
  readonly complain: Complain;
  /** Complete once every plugin is registered. */
  readonly observer: Observer;
}

/** Erases which stage an adapter belongs to; the stage's name has just selected it. */
interface AnyAdapter {
  context(args: readonly unknown[], call: Call, hidden: ReadonlySet<string>): unknown;
  take(result: unknown, args: readonly unknown[], plugin: string): unknown;
}

function adapterOf(adapters: Adapters, stage: StageName): AnyAdapter | undefined {
  return Object.hasOwn(adapters, stage) ? (adapters[stage as PublicStage] as AnyAdapter) : undefined;
}

type Check = (value: unknown) => boolean;

function checkOf(shapes: Shapes, stage: string): Check | undefined {
  return (shapes as Readonly<Record<string, Check | undefined>>)[stage];
}

/** `undefined` always means "nothing to say". */
function checked(check: Check | undefined, result: unknown): unknown {
  if (result !== undefined && check?.(result) === false) throw new WrongShape('returned something of the wrong shape');
  return result;
}

/**
 * The only wrapper round a plugin's function: it charges the budget, aborts the plugin's signal, checks what comes back,
 * applies the stage's failure policy and names the culprit. It answers in tapable's callback style, so that a function
 * that is synchronous costs no promise.
 */
export function guarded(stage: StageName, tap: Guarded, fn: AnyFunction, house: House): (...args: unknown[]) => void {
  const { adapters, shapes, hidden, complain } = house;
  const { plugin } = tap;
  const open = failure[stage] === 'open';
  const adapter = adapterOf(adapters, stage);
  const check = checkOf(shapes, stage);
  const idle = observers.has(stage) ? unhurried : undefined;
  const take = (raw: unknown, args: readonly unknown[], ledger: Ledger | undefined) => {
    if (raw === undefined || adapter === undefined) return checked(check, raw);
    const started = performance.now();
    const result = adapter.take(raw, args, plugin);
    // Reading what came back may run the plugin's code, in accessors and proxies.
    ledger?.charge(performance.now() - started);
    if (ledger?.exhausted) throw new Exhausted(`its ${ledger.budget} ms were spent in what it returned`);
    return result;
  };
  const fail = (error: unknown, { requestId }: Exchange, callback: Done) => {
    const refusal = refusalFor(tap, error, adapter !== undefined);
    if (!open) return callback(refusal);
    complain({ plugin, stage, requestId, error: Exhausted.is(error) ? refusal : error });
    return callback(null);
  };
  return (...args) => {
    const callback = args.pop() as Done;
    const exchange = args[args.length - 1] as Exchange;
    const ledger = ledgerFor(tap, stage, exchange);
    const stop: Call = ledger ?? idle ?? exchange;
    const call = (watch?: Stopwatch) => {
      if (adapter !== undefined) return fn(adapter.context(args, stop, hidden));
      return fn(...(watch === undefined ? args : args.map((arg) => unclocked(arg, watch))), stop);
    };
    invoke(stage, ledger, call, (error, raw) => {
      let result: unknown;
      try {
        if (error !== undefined) throw error;
        result = take(raw, args, ledger);
      } catch (wrong) {
        tell(house, { exchange, plugin, stage, ledger, outcome: outcomeOf(wrong, adapter !== undefined) });
        return fail(wrong, exchange, callback);
      }
      tell(house, { exchange, plugin, stage, ledger, outcome: 'done' });
      return callback(null, result);
    });
  };
}

/** Runs the handler of a route under the same rules; failures are closed. */
export function guardedRoute(
  tap: Guarded,
  exchange: Exchange,
  handle: (call: Call) => Reply | Promise<Reply>,
  house: House,
): Promise<Reply> {
  const { plugin } = tap;
  const stage = 'route';
  const ledger = ledgerFor(tap, stage, exchange);
  return new Promise((resolve, reject) => {
    invoke(
      stage,
      ledger,
      () => handle(ledger ?? exchange),
      (error, result) => {
        try {
          if (error !== undefined) throw error;
          resolve(checked(checkOf(house.shapes, stage), result ?? null) as Reply);
          tell(house, { exchange, plugin, stage, ledger, outcome: 'done' });
        } catch (wrong) {
          tell(house, { exchange, plugin, stage, ledger, outcome: outcomeOf(wrong, false) });
          reject(refusalFor(tap, wrong, false));
        }
      },
    );
  });
}
