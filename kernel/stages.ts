import type { Exchange } from './exchange.ts';
import type { ApiResponse, CallContext, Values } from './values.ts';

type ValueName = keyof Values;

/**
 * How the functions of a stage are combined. A *gate* allows or refuses the request, and a *pick* has one provider answer:
 * both call one function after another until one returns a value. At *around* stages each function wraps the next one. A
 * *map* passes each result to the next function, which gets the last value where one returns nothing. A *watch* calls all
 * functions at once and ignores what they return.
 */
export type Kind = 'gate' | 'pick' | 'around' | 'map' | 'watch';

/** One row of the table of stages. */
export interface Stage {
  readonly kind: Kind;
  /** The arguments of its functions, always followed by the exchange and the call context. */
  readonly takes: readonly ValueName[];
  /** The type of their results, which the guard checks; absent for a watch. */
  readonly returns?: ValueName;
  /** `open`: when a function fails, the request goes on without it. Otherwise the request is refused (fail-closed). */
  readonly fails?: 'open';
  /** Whether it runs even after the client has left. */
  readonly always?: true;
  /** The service does not start when no plugin has a function here. */
  readonly required?: true;
  /** What each of its functions is registered for. A plugin gives a table of functions by variant instead of one function. */
  readonly variants?: 'auth type' | 'mode' | 'price' | 'route';
  /** A plugin may have no budget here: it waits for others, and bounds that itself. Elsewhere it has the default budget. */
  readonly unbounded?: true;
  /** Built-ins are called after operators' plugins, as at pick and around stages. */
  readonly builtinsLast?: true;
  /** Plugins give its functions by a member of their own (`routes`, `vary`), not under `hooks`. */
  readonly ownMember?: true;
  /** A public hook: functions get one context instead of the arguments. Any error is a drop (403), unless it fails open. */
  readonly public?: true;
  /** Whether its functions can alter what is signed, or what is sent as the signed answer. */
  readonly alters?: true;
}

/**
 * The table of stages, in the order in which a request passes them: `answer` to `concluded` run inside `present`, by its `run`.
 * Hooks, function types, the guard's policies, result checks, the `plugins` command and the documentation derive from it.
 * `pipeline.ts` asks all but `price`, which payments ask.
 */
const table = {
  admit: { kind: 'gate', takes: [], returns: 'allowed' },
  route: { kind: 'pick', takes: ['request'], returns: 'httpResponse', variants: 'route', ownMember: true },
  resolve: { kind: 'pick', takes: ['endpointId'], returns: 'endpoint', required: true, alters: true },
  parseBody: { kind: 'pick', takes: ['httpRequest'], returns: 'parameters', required: true, alters: true },
  onHttpRequest: { kind: 'gate', takes: [], returns: 'rejection', public: true },
  price: { kind: 'pick', takes: ['parameters'], returns: 'amount', variants: 'price' },
  authenticate: { kind: 'gate', takes: ['method'], returns: 'allowed', variants: 'auth type' },
  validate: { kind: 'map', takes: ['parameters'], returns: 'parameters', builtinsLast: true, alters: true },
  vary: { kind: 'map', takes: ['variation'], returns: 'variation', ownMember: true },
  prepare: { kind: 'pick', takes: ['parameters', 'variation'], returns: 'question', required: true, alters: true },
  present: { kind: 'pick', takes: ['run'], returns: 'httpResponse', variants: 'mode', alters: true, unbounded: true },
  answer: { kind: 'around', takes: ['question'], returns: 'signedResponse', alters: true, unbounded: true },
  onBeforeApiCall: { kind: 'map', takes: ['parameters'], returns: 'parameters', public: true, alters: true },
  callApi: { kind: 'around', takes: ['outgoing'], returns: 'response', required: true, alters: true, unbounded: true },
  onAfterApiCall: { kind: 'map', takes: ['response', 'parameters'], returns: 'response', public: true, alters: true },
  encode: { kind: 'pick', takes: ['response', 'question'], returns: 'encoded', required: true, alters: true },
  encrypt: { kind: 'map', takes: ['data'], returns: 'data', alters: true },
  onBeforeSign: { kind: 'map', takes: ['data'], returns: 'data', public: true, alters: true },
  statements: { kind: 'map', takes: ['statements', 'signRequest'], returns: 'statements', alters: true },
  sign: { kind: 'pick', takes: ['signRequest'], returns: 'signed', required: true, alters: true },
  attest: { kind: 'pick', takes: ['outgoing'], returns: 'proof', fails: 'open' },
  approve: { kind: 'gate', takes: ['signedResponse'], returns: 'approved', builtinsLast: true },
  concluded: { kind: 'watch', takes: ['outcome'], fails: 'open', always: true },
  respond: { kind: 'map', takes: ['headers'], returns: 'headers', fails: 'open', always: true },
  onResponseSent: { kind: 'watch', takes: ['status', 'signedResponse'], fails: 'open', always: true, public: true },
  onError: { kind: 'watch', takes: ['refusal', 'endpointId'], fails: 'open', always: true, public: true },
} as const satisfies Readonly<Record<string, Stage>>;

/** The name of a stage. */
export type StageName = keyof typeof table;
/** The row of a stage, with its exact type. */
export type Row<N extends StageName> = (typeof table)[N];
/** The names of the stages whose row fits a type. */
export type NamesWith<P> = { [N in StageName]: Row<N> extends P ? N : never }[StageName];

/** Stages whose functions are each registered for a variant: a price, an auth type, a mode, a route. */
export type VariantStage = NamesWith<{ readonly variants: string }>;
/** Stages at which each function wraps the next one. */
export type AroundStage = NamesWith<{ readonly kind: 'around' }>;
/** The first argument of an around stage's function, which may pass another value to the next one. */
export type AroundValue<N extends AroundStage> = ValueOf<Row<N>['takes'][0]>;
/** The arguments of a stage's functions, without the call context. */
export type ArgsOf<N extends StageName> = [...ValuesOf<Row<N>['takes']>, exchange: Exchange];
/** The result of a stage's functions. */
export type ResultOf<N extends StageName> = Row<N> extends { readonly returns: infer R } ? ValueOf<R> : void;
/** The result of asking a stage. A map always has one, since it begins with the value that it is given. */
export type AnswerOf<N extends StageName> = ResultOf<N> | (Row<N> extends { readonly kind: 'map' } ? never : undefined);
/** The type of a value by its name in {@link Values}. */
export type ValueOf<V> = V extends ValueName ? Values[V] : never;
type ValuesOf<T> = { -readonly [I in keyof T]: ValueOf<T[I]> };

/** The names of all stages, in the order of the table. */
export const stageNames: readonly StageName[] = Object.keys(table) as StageName[];
/** Returns a table of values by stage. */
export const byStage = <T>(make: (stage: StageName) => T): Record<StageName, T> =>
  Object.fromEntries(stageNames.map((stage) => [stage, make(stage)])) as Record<StageName, T>;
/** The rows of the table by the names of their stages. */
export const stages: Readonly<Record<StageName, Stage>> = table;

/** Thrown when a function's result has the wrong shape; the message is for the log. */
export class WrongShape extends Error {}

/**
 * How a stage's functions get their context, and how their results are read: as checked copies, or as they are where they
 * cannot change. The methods throw {@link WrongShape}.
 */
export interface Contract {
  /** Makes the context that a public hook gets in place of the arguments. @param hidden headers that it must not show. */
  context?(args: readonly unknown[], call: CallContext, hidden: ReadonlySet<string>, plugin: string): unknown;
  /** Reads the memo that a public hook left in its context, once the hook has succeeded. */
  ended?(context: unknown): void;
  /** Reads a function's result. */
  accept?(value: unknown, args: readonly unknown[], plugin: string): unknown;
  /** Reads the value that a function of an around stage passes to the next one. */
  input?(value: unknown, args: readonly unknown[]): unknown;
}

/** The contracts of all stages. */
export interface Contracts {
  of(stage: StageName): Contract;
  /** Freezes a response before an operator's plugin gets it. Freezing takes time, so built-ins are trusted not to change it. */
  protect(response: ApiResponse): void;
}
