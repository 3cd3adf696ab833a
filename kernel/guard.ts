import { types } from 'node:util';
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

function ledgerFor({ plugin, budget }: Guarded, watching: boolean, exchange: Exchange): Ledger | undefined {
  if (budget === 'none') return undefined;
  if (watching) return new Ledger(budget);
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

const spentBefore = () => new Exhausted('its budget was spent before the call');
const spentIn = ({ budget }: Ledger) => new Exhausted(`its ${budget} ms were spent in the call`);

const { then } = Promise.prototype;

/** The promise of what a call returned, if it did return one. Only those of JavaScript itself are used as they are. */
function pendingOf(result: unknown): Promise<unknown> | undefined {
  if (!isThenable(result)) return undefined;
  return types.isPromise(result) && result.then === then ? result : new Promise((resolve) => resolve(result));
}

/** Waits inside the budget; calls `done` once. Whatever the function does after its budget ended lands nowhere. */
function wait(pending: Promise<unknown>, watch: Stopwatch | undefined, done: Done): void {
  let open = true;
  const finish: Done = (error, result) => {
    if (!open) return;
    open = false;
    if (watch?.stop()) done(spentIn(watch.ledger));
    else done(error, result);
  };
  const reject = (error: unknown) => finish(error ?? new Error('rejected with nothing'));
  watch?.arm(() => finish(undefined));
  try {
    pending.then((value) => finish(undefined, value), reject);
  } catch (error) {
    // Whoever made the promise may have given it a constructor that throws.
    reject(error);
  }
}

function within(pending: Promise<unknown>, watch: Stopwatch | undefined): Promise<unknown> {
  return new Promise((resolve, reject) => {
    wait(pending, watch, (error, result) => (error === undefined ? resolve(result) : reject(error)));
  });
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
function tell(
  { observer }: House,
  { plugin }: Guarded,
  stage: string,
  exchange: Exchange,
  ledger: Ledger | undefined,
  outcome: CallEvent['outcome'],
): void {
  if (ledger !== undefined || outcome !== 'done') observer.call?.({ exchange, plugin, stage, ledger, outcome });
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
  const watching = observers.has(stage);
  const idle = watching ? unhurried : undefined;
  const take = (raw: unknown, args: readonly unknown[], ledger: Ledger | undefined) => {
    if (raw === undefined || adapter === undefined) return checked(check, raw);
    const started = performance.now();
    const result = adapter.take(raw, args, plugin);
    // Reading what came back may run the plugin's code, in accessors and proxies.
    ledger?.charge(performance.now() - started);
    if (ledger?.exhausted) throw new Exhausted(`its ${ledger.budget} ms were spent in what it returned`);
    return result;
  };
  const call = (args: readonly unknown[], stop: Call, watch: Stopwatch | undefined) => {
    if (adapter !== undefined) return fn(adapter.context(args, stop, hidden));
    return watch === undefined ? fn(...args) : fn(...args.map((arg) => unclocked(arg, watch)));
  };
  const fail = (error: unknown, { exchange, ledger, callback }: Invocation) => {
    tell(house, tap, stage, exchange, ledger, outcomeOf(error, adapter !== undefined));
    const refusal = refusalFor(tap, error, adapter !== undefined);
    if (!open) return callback(refusal);
    complain({ plugin, stage, requestId: exchange.requestId, error: Exhausted.is(error) ? refusal : error });
    return callback(null);
  };
  const succeed = (result: unknown, { exchange, ledger, callback }: Invocation) => {
    tell(house, tap, stage, exchange, ledger, 'done');
    return callback(null, result);
  };
  const conclude = (raw: unknown, invocation: Invocation) => {
    let result: unknown;
    try {
      result = take(raw, invocation.args, invocation.ledger);
    } catch (error) {
      return fail(error, invocation);
    }
    return succeed(result, invocation);
  };
  const later = (pending: Promise<unknown>, watch: Stopwatch | undefined, invocation: Invocation) =>
    wait(pending, watch, (error, raw) => (error === undefined ? conclude(raw, invocation) : fail(error, invocation)));
  // Without closures of its own: it runs some twenty times in a request, and nearly every function answers at once.
  return (...args) => {
    const last = args.length - 1;
    const callback = args[last] as Done;
    const exchange = args[last - 1] as Exchange;
    const ledger = ledgerFor(tap, watching, exchange);
    const stop = ledger ?? idle ?? exchange;
    // Where tapable has its callback, the function finds what tells it to stop.
    args[last] = stop;
    const invocation: Invocation = { args, exchange, ledger, callback };
    if (ledger?.exhausted) return fail(spentBefore(), invocation);
    const since = ledger === undefined ? 0 : performance.now();
    // A clock that can stand still is for functions that may get the rest of the pipeline to run.
    const watch = ledger === undefined || adapter !== undefined ? undefined : new Stopwatch(ledger, stage, since);
    let raw: unknown;
    let pending: Promise<unknown> | undefined;
    try {
      raw = call(args, stop, watch);
      pending = pendingOf(raw);
    } catch (error) {
      return fail(overspent(ledger, watch, stage, since) ?? error ?? new Error('threw nothing'), invocation);
    }
    if (pending !== undefined)
      return later(pending, watch ?? (ledger && new Stopwatch(ledger, stage, since)), invocation);
    const exhausted = overspent(ledger, watch, stage, since);
    return exhausted === undefined ? conclude(raw, invocation) : fail(exhausted, invocation);
  };
}

/** Charges a call that has just ended. */
function overspent(
  ledger: Ledger | undefined,
  watch: Stopwatch | undefined,
  stage: string,
  since: number,
): Exhausted | undefined {
  if (ledger === undefined) return undefined;
  const over = watch === undefined ? ledger.spend(stage, performance.now() - since) : watch.stop();
  return over ? spentIn(ledger) : undefined;
}

/** A call of a plugin's function, and who waits for its end. */
interface Invocation {
  readonly args: readonly unknown[];
  readonly exchange: Exchange;
  readonly ledger: Ledger | undefined;
  readonly callback: Done;
}

/** Runs the handler of a route under the same rules; failures are closed. */
export async function guardedRoute(
  tap: Guarded,
  exchange: Exchange,
  handle: (call: Call) => Reply | Promise<Reply>,
  house: House,
): Promise<Reply> {
  const stage = 'route';
  const ledger = ledgerFor(tap, false, exchange);
  const refuse = (error: unknown): never => {
    tell(house, tap, stage, exchange, ledger, outcomeOf(error, false));
    throw refusalFor(tap, error, false);
  };
  if (ledger?.exhausted) return refuse(spentBefore());
  const watch = ledger && new Stopwatch(ledger, stage, performance.now());
  let reply: Reply;
  try {
    const raw: unknown = handle(ledger ?? exchange);
    const pending = pendingOf(raw);
    const result = pending === undefined ? raw : await within(pending, watch);
    if (watch?.stop()) throw spentIn(watch.ledger);
    reply = checked(checkOf(house.shapes, stage), result ?? null) as Reply;
  } catch (error) {
    return refuse(watch?.stop() ? spentIn(watch.ledger) : (error ?? new Error('threw nothing')));
  }
  tell(house, tap, stage, exchange, ledger, 'done');
  return reply;
}
