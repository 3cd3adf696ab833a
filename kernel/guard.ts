import { types } from 'node:util';
import { control, type Exchange } from './exchange.ts';
import { type Call, charge, Ledger, note } from './ledger.ts';
import type { CallEvent, Observer } from './observer.ts';
import { asRefusal, describe, type Refusal, readRefusal, refusals } from './refusal.ts';
import { type Adapters, failure, type PublicStage, type Reply, type Shapes, type StageName } from './stages.ts';

/** Who is called and with how much time: what the guard knows of a plugin. */
export interface Guarded {
  readonly plugin: string;
  /** Milliseconds per request, or none: the plugin bounds its own stages. */
  readonly budget: number | 'none';
}

/** Told of every failure of a plugin's function, with the plugin and the stage. */
export type Complain = (complaint: { plugin: string; stage: string; requestId: string; error: unknown }) => void;

type Done = (error: Refusal | null, result?: unknown) => void;
type AnyFunction = (...args: unknown[]) => unknown;

/** Watching happens after the fact: it gets a fresh allowance, whether the budget is spent or the client gone. */
const observers: ReadonlySet<string> = new Set(['settle', 'store', 'onResponseSent', 'onError']);

/** For observers without a budget. */
const unhurried: Call = Object.freeze({
  get signal() {
    return new AbortController().signal;
  },
});

function ledgerFor({ plugin, budget, watching }: Tap, exchange: Exchange): Ledger | undefined {
  if (budget === 'none') return undefined;
  if (watching) return new Ledger(budget);
  const ledgers = control.ledgers(exchange);
  const known = ledgers.get(plugin);
  if (known !== undefined) return known;
  const ledger = new Ledger(budget, exchange);
  ledgers.set(plugin, ledger);
  return ledger;
}

/** A budget ended; the guard's own, so that no plugin can throw it, nor be asked whether it did. */
class Exhausted extends Error {
  readonly #own = true;

  static is(error: unknown): error is Exhausted {
    return typeof error === 'object' && error !== null && #own in error;
  }
}

const { then } = Promise.prototype;

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** The promise of what a call returned, if it did return one. Only those of JavaScript itself are used as they are. */
function pendingOf(result: unknown): Promise<unknown> | undefined {
  if (!isThenable(result)) return undefined;
  return types.isPromise(result) && result.then === then ? result : new Promise((resolve) => resolve(result));
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

/** A function of a plugin at a stage, and all that is known of it before it is called. */
interface Tap extends Guarded {
  readonly stage: string;
  readonly fn: AnyFunction;
  readonly adapter: AnyAdapter | undefined;
  /** Reads what it returned; throws for what is of the wrong shape. */
  readonly read: ((result: unknown, args: readonly unknown[]) => unknown) | undefined;
  readonly watching: boolean;
  /** Whether a failure refuses the request. */
  readonly closed: boolean;
  readonly house: House;
}

function readerOf(shapes: Shapes, stage: string): Tap['read'] {
  return (shapes as Readonly<Record<string, Tap['read']>>)[stage];
}

function adapterOf(adapters: Adapters, stage: StageName): AnyAdapter | undefined {
  return Object.hasOwn(adapters, stage) ? (adapters[stage as PublicStage] as AnyAdapter) : undefined;
}

/**
 * The only wrapper round a plugin's function: it charges the budget, aborts the plugin's signal, reads what comes back,
 * applies the stage's failure policy and names the culprit. It answers in tapable's callback style, so that a function
 * that is synchronous costs no promise, and calls back once, without ever throwing.
 */
export function guarded(stage: StageName, who: Guarded, fn: AnyFunction, house: House): (...args: unknown[]) => void {
  const { plugin, budget } = who;
  const adapter = adapterOf(house.adapters, stage);
  const read: Tap['read'] = adapter
    ? (result, args) => adapter.take(result, args, plugin)
    : readerOf(house.shapes, stage);
  const closed = failure[stage] === 'closed';
  const tap: Tap = { stage, plugin, budget, fn, adapter, read, watching: observers.has(stage), closed, house };
  return (...args) => {
    // Tapable adds its callback; the exchange is the last argument of every stage.
    const done = args.pop() as Done;
    new Invocation(tap, args, args[args.length - 1] as Exchange, done).run();
  };
}

/** Runs the handler of a route under the same rules; failures are closed. */
export function guardedRoute(
  who: Guarded,
  exchange: Exchange,
  handle: (call: Call) => Reply | Promise<Reply>,
  house: House,
): Promise<Reply> {
  const stage = 'route';
  const shape = readerOf(house.shapes, stage);
  // A route has to say something.
  const read: Tap['read'] = shape && ((result, args) => shape(result ?? null, args));
  const fn: AnyFunction = (call) => handle(call as Call);
  const tap: Tap = { ...who, stage, fn, adapter: undefined, read, watching: false, closed: true, house };
  return new Promise((resolve, reject) => {
    const done: Done = (refusal, reply) => (refusal === null ? resolve(reply as Reply) : reject(refusal));
    new Invocation(tap, [], exchange, done).run();
  });
}

/** One call of a plugin's function, from the check of its budget to the outcome. */
class Invocation {
  readonly #tap: Tap;
  readonly #args: readonly unknown[];
  readonly #exchange: Exchange;
  readonly #done: Done;
  readonly #ledger: Ledger | undefined;
  #isOver = false;
  /** Since when time is charged. */
  #since = 0;
  #used = 0;
  /** Runs of the rest of the pipeline that the function waits for. */
  #paused = 0;
  #timer: NodeJS.Timeout | undefined;
  #isWaiting = false;

  constructor(tap: Tap, args: readonly unknown[], exchange: Exchange, done: Done) {
    this.#tap = tap;
    this.#args = args;
    this.#exchange = exchange;
    this.#done = done;
    this.#ledger = ledgerFor(tap, exchange);
  }

  run(): void {
    if (this.#ledger?.exhausted) this.#fail(new Exhausted('its budget was spent before the call'));
    else this.#begin();
  }

  #begin(): void {
    if (this.#ledger !== undefined) this.#since = performance.now();
    let raw: unknown;
    let pending: Promise<unknown> | undefined;
    try {
      raw = this.#call();
      pending = pendingOf(raw);
    } catch (error) {
      this.#reject(error);
      return;
    }
    if (pending === undefined) this.#resolve(raw);
    else this.#wait(pending);
  }

  #call(): unknown {
    const { fn, adapter, watching, house } = this.#tap;
    const stop: Call = this.#ledger ?? (watching ? unhurried : this.#exchange);
    if (adapter !== undefined) return fn(adapter.context(this.#args, stop, house.hidden));
    if (this.#ledger === undefined) return fn(...this.#args, stop);
    return fn(...this.#args.map((arg) => this.#uncharged(arg)), stop);
  }

  /** Waits inside the budget. Whatever the function does after its budget ended lands nowhere. */
  #wait(pending: Promise<unknown>): void {
    this.#isWaiting = true;
    if (this.#paused === 0) this.#arm();
    try {
      pending.then(
        (raw) => this.#resolve(raw),
        (error) => this.#reject(error),
      );
    } catch (error) {
      // Whoever made the promise may have given it a constructor that throws.
      this.#reject(error);
    }
  }

  #resolve(raw: unknown): void {
    if (this.#isOver) return;
    this.#end();
    let result: unknown;
    try {
      if (this.#ledger?.exhausted) throw this.#spent('in the call');
      result = this.#read(raw);
    } catch (error) {
      this.#fail(error ?? new Error('threw nothing'));
      return;
    }
    this.#tell('done');
    this.#done(null, result);
  }

  #reject(error: unknown): void {
    if (this.#isOver) return;
    this.#end();
    const missing = () => new Error(this.#isWaiting ? 'rejected with nothing' : 'threw nothing');
    this.#fail(this.#ledger?.exhausted ? this.#spent('in the call') : (error ?? missing()));
  }

  /** Reading what came back may run the plugin's code, in accessors and proxies. `undefined` means nothing to say. */
  #read(raw: unknown): unknown {
    const { read, stage } = this.#tap;
    if (read === undefined || (raw === undefined && stage !== 'route')) return undefined;
    const ledger = this.#ledger;
    if (ledger === undefined) return read(raw, this.#args);
    let result: unknown;
    let failure: unknown;
    this.#since = performance.now();
    try {
      result = read(raw, this.#args);
    } catch (error) {
      failure = error ?? new Error('threw nothing');
    }
    this.#charge();
    if (ledger.exhausted) throw this.#spent('in what it returned');
    if (failure !== undefined) throw failure;
    return result;
  }

  #fail(error: unknown): void {
    const { plugin, stage, closed, house } = this.#tap;
    const { outcome, refusal } = this.#readThrown(error);
    this.#tell(outcome);
    if (!closed) {
      const { requestId } = this.#exchange;
      house.complain({ plugin, stage, requestId, error: outcome === 'exhausted' ? refusal : error });
    }
    this.#done(closed ? refusal : null);
  }

  /** Reading what was thrown may run the plugin's code, too. */
  #readThrown(error: unknown): { readonly outcome: CallEvent['outcome']; readonly refusal: Refusal } {
    const { plugin, adapter } = this.#tap;
    if (Exhausted.is(error)) {
      return { outcome: 'exhausted', refusal: asRefusal(refusals.exhausted(plugin, error.message)) };
    }
    if (this.#ledger !== undefined) this.#since = performance.now();
    // In a public hook a refusal is a drop like any other failure; what an inner stage refuses is what its plugin has to say.
    const said = adapter === undefined ? readRefusal(error) : undefined;
    const reason = said === undefined ? describe(error) : '';
    this.#charge();
    if (this.#ledger?.exhausted) return this.#readThrown(this.#spent('in what it threw'));
    if (said !== undefined) return { outcome: 'done', refusal: said };
    const refusal = adapter ? refusals.dropped(plugin, reason) : refusals.internal(`plugin "${plugin}": ${reason}`);
    return { outcome: 'failed', refusal: asRefusal(refusal) };
  }

  /** Of plugins without a budget only failures are worth a word. */
  #tell(outcome: CallEvent['outcome']): void {
    const ledger = this.#ledger;
    const { plugin, stage, house } = this.#tap;
    if (ledger !== undefined && this.#since !== 0) note(ledger, { stage, milliseconds: this.#used });
    if (ledger === undefined && outcome === 'done') return;
    house.observer.call?.({ exchange: this.#exchange, plugin, stage, ledger, outcome });
  }

  #spent(where: string): Exhausted {
    return new Exhausted(`its ${this.#tap.budget} ms were spent ${where}`);
  }

  /** Time inside the rest of the pipeline is charged to nobody. */
  #uncharged(arg: unknown): unknown {
    if (typeof arg !== 'function') return arg;
    return (...args: unknown[]) => {
      this.#pause();
      const run = async () => {
        if (this.#ledger?.exhausted) throw new Error('the budget has ended');
        return arg(...args);
      };
      const work = run().finally(() => this.#resume());
      // The plugin may not wait for it.
      work.catch(() => undefined);
      return work;
    };
  }

  #pause(): void {
    if (this.#paused++ > 0 || this.#isOver) return;
    this.#charge();
    clearTimeout(this.#timer);
  }

  #resume(): void {
    if (--this.#paused > 0 || this.#isOver) return;
    this.#since = performance.now();
    if (this.#isWaiting) this.#arm();
  }

  /** Until the function turned out to be asynchronous no timer is worth its cost. */
  #arm(): void {
    const ledger = this.#ledger;
    if (ledger === undefined) return;
    const exhaust = () => {
      this.#charge();
      charge(ledger, Math.max(ledger.remaining, 0));
      this.#reject(undefined);
    };
    this.#timer = setTimeout(exhaust, Math.max(ledger.remaining, 0));
  }

  /** Once it is over, nothing is charged any more. */
  #end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    if (this.#paused === 0) this.#charge();
  }

  #charge(): void {
    if (this.#ledger === undefined) return;
    const now = performance.now();
    const milliseconds = now - this.#since;
    // What is charged once is not charged again: a budget that ends by its timer is spent exactly.
    this.#since = now;
    this.#used += milliseconds;
    charge(this.#ledger, milliseconds);
  }
}
