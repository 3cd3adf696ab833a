import type { Exchange } from '../kernel/exchange.ts';
import type { ArgsOf, AroundStage, AroundValue, NamesWith, ResultOf, Row, StageName } from '../kernel/stages.ts';
import type { Awaitable, CallContext } from '../kernel/values.ts';

/** The stages of the public hooks, which take one context and return a small object or nothing. */
export type ContextStage = NamesWith<{ readonly public: true }>;
/** The stages whose functions take the arguments that the table of stages names. */
export type InnerStage = Exclude<StageName, ContextStage>;
/** The stages whose functions are members of a plugin's `hooks`. */
export type HookStage = Exclude<StageName, NamesWith<{ readonly ownMember: true }>>;
/** The names of the values that functions of inner stages return. */
export type InnerResult = { [N in InnerStage]: Row<N> extends { returns: infer R } ? R : never }[InnerStage];

/** The last argument of a function at an around stage (`answer`, `callApi`). */
export interface AroundCall<V, R> extends CallContext {
  /**
   * Calls the rest of the chain; a function may do so several times. The time is charged to no plugin.
   * @param value replaces the value that the function got.
   * @throws Refusal, as the client would get it.
   */
  next(value?: V): Promise<R>;
  /**
   * Does work once for all requests that ask for the same key at the same time, as in Go's `singleflight`. The work runs on a
   * fork of the first request's exchange, and on its budgets. It goes on while any request waits, and its success or failure is
   * shared. If a budget of the first request ends meanwhile, the others begin the work again, once. Waiting is charged to no
   * plugin.
   * @param key names the work; other plugins and stages have their own keys.
   * @throws Refusal
   */
  share(key: string, work: (flight: Flight<V, R>) => Awaitable<R>): Promise<R>;
}

/** The argument of shared work. */
export interface Flight<V, R> extends CallContext {
  /** A fork of the first request's exchange: same endpoint, parameters, context values and budgets. */
  readonly exchange: Exchange;
  /** Calls the rest of the chain, as {@link AroundCall.next} does. */
  next(value?: V): Promise<R>;
}

/** The last argument of a stage's functions: the abort signal and, at an around stage, the rest of the chain. */
export type CallOf<N extends StageName> = N extends AroundStage ? AroundCall<AroundValue<N>, ResultOf<N>> : CallContext;

/** The function of an inner stage. */
export type StageFn<N extends StageName> = (
  ...args: [...ArgsOf<N>, call: CallOf<N>]
) => Awaitable<ResultOf<N> | undefined | void>;
