import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { AsyncParallelHook, AsyncSeriesBailHook, AsyncSeriesWaterfallHook, HookMap } from 'tapable';
import type { Answer, Encoded, Signed } from './answer.ts';
import type { AuthMethod, Endpoint } from './endpoint.ts';
import type { Exchange, Hex, Json, Parameters } from './exchange.ts';
import type { JsonText } from './json-text.ts';
import type { Call } from './ledger.ts';
import type { Refusal } from './refusal.ts';

/** What an upstream answered. */
export interface ApiResponse {
  readonly data: Json;
  readonly status: number;
  /** The JSON text that `data` was parsed from: it holds digits that a double loses. Absent once a plugin replaced the data. */
  readonly text?: string;
}

/** How a request ended; `abandoned`: the client left before there was an answer. */
export type Outcome =
  | { readonly kind: 'signed'; readonly answer: Answer }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'abandoned' };

/** An HTTP request as it arrived, its body unread. */
export interface Arrival {
  readonly request: IncomingMessage;
  /** Koa's view of it, for middleware; made when it is first asked for. */
  readonly ctx: Context;
}

/** What goes back over HTTP; `body` is JSON text, and checked to be, unless the headers say otherwise. */
export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | JsonText;
}

/** The rest of the pipeline, to be called once. `detached` unties it from the client's connection. */
export type Run = (options?: { readonly detached?: boolean }) => Promise<Answer>;

export interface SignRequest {
  readonly endpointId: Hex;
  /** Unix seconds. */
  readonly timestamp: number;
  readonly data: Hex;
}

export type Headers = Readonly<Record<string, string>>;
export type Proof = Readonly<Record<string, unknown>>;

/**
 * The stages in the order in which a request passes them. Four kinds: a *gate* (bail) allows or throws a refusal; a *pick*
 * (bail) takes the first answer; a *map* (waterfall) hands each result to the next; a *watch* (parallel) only observes.
 */
export function createHooks() {
  return {
    admit: new AsyncSeriesBailHook<[Exchange], true>(['exchange']),
    resolve: new AsyncSeriesBailHook<[string, Exchange], Endpoint>(['id', 'exchange']),
    read: new AsyncSeriesBailHook<[Arrival, Exchange], Parameters>(['arrival', 'exchange']),
    onHttpRequest: new AsyncSeriesBailHook<[Exchange], Refusal>(['exchange']),
    authenticate: new HookMap(() => new AsyncSeriesBailHook<[AuthMethod, Exchange], true>(['method', 'exchange'])),
    validate: new AsyncSeriesWaterfallHook<[Parameters, Exchange]>(['parameters', 'exchange']),
    deliver: new HookMap(() => new AsyncSeriesBailHook<[Run, Exchange], Reply>(['run', 'exchange'])),
    lookup: new AsyncSeriesBailHook<[Parameters, Exchange], Answer>(['parameters', 'exchange']),
    onBeforeApiCall: new AsyncSeriesWaterfallHook<[Parameters, Exchange]>(['parameters', 'exchange']),
    callApi: new AsyncSeriesBailHook<[Parameters, Exchange], ApiResponse>(['parameters', 'exchange']),
    onAfterApiCall: new AsyncSeriesWaterfallHook<[ApiResponse, Parameters, Exchange]>([
      'response',
      'parameters',
      'exchange',
    ]),
    encode: new AsyncSeriesBailHook<[ApiResponse, Exchange], Encoded>(['response', 'exchange']),
    encrypt: new AsyncSeriesWaterfallHook<[Hex, Exchange]>(['data', 'exchange']),
    onBeforeSign: new AsyncSeriesWaterfallHook<[Hex, Exchange]>(['data', 'exchange']),
    sign: new AsyncSeriesBailHook<[SignRequest, Exchange], Signed>(['request', 'exchange']),
    prove: new AsyncSeriesBailHook<[Exchange], Proof>(['exchange']),
    store: new AsyncParallelHook<[Answer, Exchange]>(['answer', 'exchange']),
    settle: new AsyncParallelHook<[Outcome, Exchange]>(['outcome', 'exchange']),
    respond: new AsyncSeriesWaterfallHook<[Headers, Exchange]>(['headers', 'exchange']),
    onResponseSent: new AsyncParallelHook<[number, Exchange]>(['status', 'exchange']),
    onError: new AsyncParallelHook<[Refusal, string, Exchange]>(['refusal', 'id', 'exchange']),
  };
}

export type Hooks = ReturnType<typeof createHooks>;
export type StageName = keyof Hooks;

/** The part of tapable's hooks that the kernel uses; only the kernel holds one. */
export interface AnyHook {
  isUsed(): boolean;
  promise(...args: never[]): Promise<unknown>;
  callAsync(...argsAndCallback: unknown[]): void;
  tapAsync(name: string, fn: (...args: unknown[]) => void): void;
}

/** The hook of a stage; where the stage has variants, that of the variant (made when it is missing). */
export function hookAt(hooks: Hooks, stage: StageName, variant = ''): AnyHook {
  const hook = hooks[stage];
  return hook instanceof HookMap ? hook.for(variant) : hook;
}

export function hasVariants(stage: StageName): stage is 'authenticate' | 'deliver' {
  return stage === 'authenticate' || stage === 'deliver';
}

/** What becomes of a request when a function of the stage fails: refused (`closed`), or it goes on without (`open`). */
export const failure = {
  admit: 'closed',
  resolve: 'closed',
  read: 'closed',
  onHttpRequest: 'closed',
  authenticate: 'closed',
  validate: 'closed',
  deliver: 'closed',
  lookup: 'open',
  onBeforeApiCall: 'closed',
  callApi: 'closed',
  onAfterApiCall: 'closed',
  encode: 'closed',
  encrypt: 'closed',
  onBeforeSign: 'closed',
  sign: 'closed',
  prove: 'open',
  store: 'open',
  settle: 'open',
  respond: 'open',
  onResponseSent: 'open',
  onError: 'open',
} as const satisfies Record<StageName, 'closed' | 'open'>;

type HookOf<N extends StageName> = Hooks[N] extends HookMap<infer H> ? H : Hooks[N];
type Args<H> = H extends { promise(...args: infer A): Promise<unknown> } ? A : never;
type Out<H> =
  H extends AsyncParallelHook<infer _>
    ? void
    : H extends { promise(...args: never[]): Promise<infer R> }
      ? R | undefined
      : never;
export type StageArgs<N extends StageName> = Args<HookOf<N>>;
export type StageOut<N extends StageName> = Out<HookOf<N>>;

export type Awaitable<T> = T | Promise<T>;

/** The signature of a stage's function as the kernel calls it: the stage's arguments, and what tells it to stop. */
export type StageFn<N extends StageName> = (
  ...args: [...StageArgs<N>, call: Call]
) => Awaitable<StageOut<N> | undefined | void>;

/** The stages whose functions see a context made for them instead of the stage's own arguments; any throw there is a drop. */
export type PublicStage =
  | 'onHttpRequest'
  | 'onBeforeApiCall'
  | 'onAfterApiCall'
  | 'onBeforeSign'
  | 'onResponseSent'
  | 'onError';

/** Translates between a public stage and its functions. */
export interface Adapter<N extends StageName> {
  /** @param hidden lower-case names of request headers that functions must not see */
  context(args: StageArgs<N>, call: Call, hidden: ReadonlySet<string>): unknown;
  /** @throws WrongShape */
  take(result: unknown, args: StageArgs<N>, plugin: string): StageOut<N>;
}

export type Adapters = { readonly [N in PublicStage]: Adapter<N> };

/**
 * Reads what the functions of the other stages, and the handlers of routes, return: a checked copy, or the value itself where
 * it cannot change. Without an entry the value is ignored. Those of public stages are read by their adapters.
 *
 * @throws WrongShape, and whatever reading a hostile value throws.
 */
export type Shapes = {
  readonly [N in Exclude<StageName, PublicStage> | 'route']?: (value: unknown, args: readonly unknown[]) => unknown;
};

/** What a function returned is of the wrong shape; the message is for the log. */
export class WrongShape extends Error {}
