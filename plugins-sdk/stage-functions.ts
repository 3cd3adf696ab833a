import type { Exchange } from '../kernel/exchange.ts';
import type {
  ArgsOf,
  AroundStage,
  AroundValue,
  Contracts,
  Hidden,
  NamesWith,
  ResultOf,
  Row,
  StageName,
} from '../kernel/stages.ts';
import type { Awaitable, CallContext, Values } from '../kernel/values.ts';

/** The hooks that operators' plugins know: one context in, a small object or nothing out. */
export type ContextStage = NamesWith<{ readonly context: true }>;
/** Stages whose functions get the arguments as the table names them. */
export type InnerStage = Exclude<StageName, ContextStage>;
/** Stages whose functions stand among a plugin's hooks. */
export type HookStage = Exclude<StageName, NamesWith<{ readonly beside: true }>>;
/** What functions of inner stages return. */
export type InnerResult = { [N in InnerStage]: Row<N> extends { returns: infer R } ? R : never }[InnerStage];

/** What a function of an onion gets beside the stage's arguments. */
export interface AroundCall<V, R> extends CallContext {
  /**
   * Asks the rest of the chain, as often as wanted. Its time is charged to no plugin.
   * @param value in place of the one that the function got.
   * @throws Refusal, as the client would get it.
   */
  next(value?: V): Promise<R>;
  /**
   * Has work done once for all who ask for the same key at the same time, as Go's `singleflight` does. It belongs to none of them.
   * It runs on an exchange of its own, goes on while a request waits, and its success or failure is for all of these. If a budget of the
   * request that began it ends meanwhile, the others begin it again, once.
   * Waiting is charged to no plugin.
   * @param key of this plugin and stage.
   * @throws Refusal
   */
  share(key: string, work: (flight: Flight<V, R>) => Awaitable<R>): Promise<R>;
}

/** What shared work gets. */
export interface Flight<V, R> extends CallContext {
  /** As the one who began it: same input, endpoint, parameters and context values, and what is left of its budgets. */
  readonly exchange: Exchange;
  next(value?: V): Promise<R>;
}

/** What a stage's functions get last: what tells them to stop, and in an onion the rest of the chain. */
export type CallOf<N extends StageName> = N extends AroundStage ? AroundCall<AroundValue<N>, ResultOf<N>> : CallContext;

/** The type of an inner stage's function. */
export type StageFn<N extends StageName> = (
  ...args: [...ArgsOf<N>, call: CallOf<N>]
) => Awaitable<ResultOf<N> | undefined | void>;

/** What plugins of a context stage see, and how what they return is read. */
export interface ContextContract<N extends StageName> {
  /** @param hidden lower-case names of request headers that functions must not see. */
  context(args: ArgsOf<N>, call: CallContext, hidden: Hidden, plugin: string): unknown;
  /** @throws WrongShape */
  accept(value: unknown, args: ArgsOf<N>, plugin: string): ResultOf<N> | undefined;
}

/**
 * How what plugins return becomes a stage's result: a checked copy, or the value itself where it cannot change. They throw
 * {@link WrongShape}, and whatever reading a hostile value throws.
 */
export interface StageContracts extends Contracts {
  readonly contexts: { readonly [N in ContextStage]: ContextContract<N> };
  /** Of an onion's first argument, what a function hands to the next one; the arguments are those it got. */
  readonly inputs: { readonly [N in AroundStage]: (value: unknown, args: readonly unknown[]) => AroundValue<N> };
  readonly results: {
    readonly [R in InnerResult]: (value: unknown, args: readonly unknown[], plugin: string) => Values[R];
  };
}
