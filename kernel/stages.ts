import type { Exchange } from './exchange.ts';
import type { ApiResponse, CallContext, Values } from './values.ts';

type ValueName = keyof Values;

/**
 * A *gate* allows or refuses, and a *pick* has one provider answer. Both ask one plugin after the other until one has
 * something to say. *Around* is an onion: each function has the next one inside it. A *map* hands what each returns to the
 * next. A *watch* tells all at once, and wants to hear nothing.
 */
export type Kind = 'gate' | 'pick' | 'around' | 'map' | 'watch';

/** One row of the table. */
export interface Stage {
  readonly kind: Kind;
  /** What its functions get; the request itself comes last, always. */
  readonly takes: readonly ValueName[];
  /** The checked type of their results; a watch returns nothing. */
  readonly returns?: ValueName;
  /** When a function fails the request goes on without it; otherwise it is refused (`closed`). */
  readonly fails?: 'open';
  /** Whether it runs even after the client left. */
  readonly always?: true;
  /** The service does not start when no plugin has a function here. */
  readonly required?: true;
  /** What its functions are registered for, one each: they stand in a table instead of being functions by themselves. */
  readonly variants?: 'auth type' | 'mode' | 'price' | 'route';
  /** Built-ins come after operators' plugins, as at pick stages. */
  readonly builtinsLast?: true;
  /** Plugins have it beside `hooks`, not among them. */
  readonly beside?: true;
  /** Functions see a context made for them instead of the stage's own arguments, and whatever they throw is a drop. */
  readonly context?: true;
  /** Whether its functions can change what gets signed, or sent as signed. */
  readonly signs?: true;
}

/**
 * Every stage, once, in the order in which a request passes them. Hooks, the types of their functions, the guard's policies,
 * the checks of results, the `plugins` command and the documentation derive from it. `pipeline.ts` asks each in its place; what takes a payment asks `price`.
 */
export const stages = {
  admit: { kind: 'gate', takes: [], returns: 'allowed' },
  route: { kind: 'pick', takes: ['request'], returns: 'httpResponse', variants: 'route', beside: true },
  resolve: { kind: 'pick', takes: ['id'], returns: 'endpoint', required: true, signs: true },
  parseBody: { kind: 'pick', takes: ['httpRequest'], returns: 'parameters', required: true, signs: true },
  onHttpRequest: { kind: 'gate', takes: [], returns: 'rejection', context: true },
  price: { kind: 'pick', takes: ['parameters'], returns: 'amount', variants: 'price' },
  authenticate: { kind: 'gate', takes: ['method'], returns: 'allowed', variants: 'auth type' },
  validate: { kind: 'map', takes: ['parameters'], returns: 'parameters', builtinsLast: true, signs: true },
  vary: { kind: 'map', takes: ['variation'], returns: 'variation', beside: true },
  prepare: { kind: 'pick', takes: ['parameters', 'variation'], returns: 'question', required: true, signs: true },
  present: { kind: 'pick', takes: ['run'], returns: 'httpResponse', variants: 'mode', signs: true },
  answer: { kind: 'around', takes: ['question'], returns: 'signedResponse', signs: true },
  onBeforeApiCall: { kind: 'map', takes: ['parameters'], returns: 'parameters', context: true, signs: true },
  callApi: { kind: 'around', takes: ['outgoing'], returns: 'response', required: true, signs: true },
  onAfterApiCall: { kind: 'map', takes: ['response', 'parameters'], returns: 'response', context: true, signs: true },
  encode: { kind: 'pick', takes: ['response', 'question'], returns: 'encoded', required: true, signs: true },
  encrypt: { kind: 'map', takes: ['data'], returns: 'data', signs: true },
  onBeforeSign: { kind: 'map', takes: ['data'], returns: 'data', context: true, signs: true },
  statements: { kind: 'map', takes: ['statements', 'signRequest'], returns: 'statements', signs: true },
  sign: { kind: 'pick', takes: ['signRequest'], returns: 'signed', required: true, signs: true },
  attest: { kind: 'pick', takes: ['outgoing'], returns: 'proof', fails: 'open' },
  approve: { kind: 'gate', takes: ['signedResponse'], returns: 'approved', builtinsLast: true },
  concluded: { kind: 'watch', takes: ['outcome'], fails: 'open', always: true },
  respond: { kind: 'map', takes: ['headers'], returns: 'headers', fails: 'open', always: true },
  onResponseSent: { kind: 'watch', takes: ['status', 'signedResponse'], fails: 'open', always: true, context: true },
  onError: { kind: 'watch', takes: ['refusal', 'id'], fails: 'open', always: true, context: true },
} as const satisfies Readonly<Record<string, Stage>>;

export type StageName = keyof typeof stages;
export type Row<N extends StageName> = (typeof stages)[N];
export type NamesWith<P> = { [N in StageName]: Row<N> extends P ? N : never }[StageName];

/** Stages whose functions are registered for something each: a price, an auth type, a mode, a route. */
export type VariantStage = NamesWith<{ readonly variants: string }>;
/** Stages of which each function has the next one inside it. */
export type AroundStage = NamesWith<{ readonly kind: 'around' }>;
/** What a function of an onion takes, and may hand to the next one in another form. */
export type AroundValue<N extends AroundStage> = ValueOf<Row<N>['takes'][0]>;
export type ArgsOf<N extends StageName> = [...ValuesOf<Row<N>['takes']>, exchange: Exchange];
export type ResultOf<N extends StageName> = Row<N> extends { readonly returns: infer R } ? ValueOf<R> : void;
/** What comes of a stage: of a map always something, since it begins with what it is given. */
export type AnswerOf<N extends StageName> = ResultOf<N> | (Row<N> extends { readonly kind: 'map' } ? never : undefined);
export type ValueOf<V> = V extends ValueName ? Values[V] : never;
type ValuesOf<T> = { -readonly [I in keyof T]: ValueOf<T[I]> };

export const stageNames: readonly StageName[] = Object.keys(stages) as StageName[];

/** Every stage's row as one type, for code that is about stages as such. */
export function stageOf(name: StageName): Stage {
  return stages[name];
}

/** A function's result has the wrong shape; the message is for the log. */
export class WrongShape extends Error {}

/** Lower-case names of request headers that carry credentials of other plugins. */
export type Hidden = Pick<ReadonlySet<string>, 'has'>;

/** What functions of a stage get, and how what they return is read: as a checked copy, or as it is where it cannot change. They throw {@link WrongShape}. */
export interface Contract {
  /** Of a public stage: what its functions see in place of the arguments. */
  context?(args: readonly unknown[], call: CallContext, hidden: Hidden, plugin: string): unknown;
  /** Looks at what a function that has ended well left in its context. */
  ended?(context: unknown, args: readonly unknown[], plugin: string): void;
  accept?(value: unknown, args: readonly unknown[], plugin: string): unknown;
  /** Reads what a function of an onion hands to the next one. */
  input?(value: unknown, args: readonly unknown[]): unknown;
}

export interface Contracts {
  of(stage: StageName): Contract;
  /** Freezes a response for a plugin that might change it; those of the service are trusted not to, for it costs time. */
  protect(response: ApiResponse): void;
}
