import type { AroundStage, AroundValue, ResultOf, Row, StageName, VariantStage } from '../../kernel/stages.ts';
import type { Values } from '../../kernel/values.ts';
import type { Hex } from '../../lib/eth/hex.ts';
import type { Awaitable, Endpoint, Json, OutgoingRequest, Parameters, Question } from '../kernel.ts';

/** What becomes of a request at one stage. */
export type HookOutcome<Value> =
  /** It goes on as it was: the plugin has no such hook, returned nothing, or what was there before. */
  | { readonly passed: true }
  /** It goes on with what the plugin returned, as the next stage gets it. */
  | { readonly value: Value }
  /** It ends here: what the client gets. */
  | { readonly refused: Refused };

/** A response that refuses; `deepEqual` compares status and message alone. */
export interface Refused {
  readonly status: number;
  readonly message: string;
  readonly headers: Readonly<Record<string, string>>;
  /** `{"error": message}`, unless the plugin has another. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** What the log of the service would say against the plugin. */
export interface Complaint {
  readonly hook: string;
  readonly requestId: string;
  /** One line: what was thrown (`Error: no route`), what was wrong with the result, or how the budget was spent. */
  readonly message: string;
  /** The same with the stack, where there is one. */
  readonly detail: string;
}

/** One request; everything has a default. */
export interface RequestInput {
  /** As the client sent them; default none. */
  readonly parameters?: Parameters | undefined;
  /** Names in any case; hooks see them in lower case, without those that carry credentials. Default none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Default `127.0.0.1`. */
  readonly ip?: string | undefined;
  /** Default the first of the `endpoints` that the plugin was given, else that of {@link testEndpoint}. */
  readonly endpoint?: Endpoint | undefined;
  /** The id as sent of a request that matches no endpoint; `onError` is the only hook that ever sees such a request. */
  readonly unknownEndpoint?: string | undefined;
  /** A route of the plugin as it registered it, instead of an endpoint: `GET /tenants/:name`. The stage `admit` is left out. */
  readonly route?: string | undefined;
}

/** What {@link testQuestion} makes a question of; default a GET without parameters. */
export interface QuestionInput {
  readonly parameters?: Parameters | undefined;
  readonly reserved?: Parameters | undefined;
  readonly request?: Partial<OutgoingRequest> | undefined;
  readonly key?: string | undefined;
  readonly requestHash?: Hex | undefined;
}

/** Stages of which a test says what is given in other words than their table has; everything has a default. */
export interface ShortInputs {
  /** A route gets no more of the body than its `maxBody`. */
  readonly route: {
    /** Values of the path's parameters, by name; default none. */
    readonly params?: Readonly<Record<string, string>> | undefined;
    /** As text (`a=1&a=2`) or by name; default none. */
    readonly query?: string | Readonly<Record<string, string>> | undefined;
    /** Default none. */
    readonly body?: string | Uint8Array | undefined;
  };
  /** The upstream's answer, default `null` with status 200, and the values of declared parameters. */
  readonly onAfterApiCall: {
    readonly data?: Json | undefined;
    readonly status?: number | undefined;
    readonly parameters?: Parameters | undefined;
  };
  readonly onResponseSent: {
    /** Default 200. */
    readonly status?: number | undefined;
    /** Milliseconds; default the time since the request was made. */
    readonly duration?: number | undefined;
    /** Members of the signed answer; the others have values of a test's own. */
    readonly answer?: Readonly<Record<string, Json>> | undefined;
  };
  /** What the client got, and the stage that failed; default `callApi` with 502 and `API call failed`. */
  readonly onError: {
    readonly status?: number | undefined;
    readonly message?: string | undefined;
    readonly stage?: StageName | undefined;
  };
}

/** Default inputs of stages. */
export interface DefaultInputs {
  /** Default those of the request. */
  readonly parameters?: Parameters | undefined;
  /** Bytes as `0x` hex; default a zero word of 32 bytes. */
  readonly data?: Hex | undefined;
  /** Default that of {@link testQuestion}. */
  readonly question?: Question | undefined;
  /** Default a GET of `https://api.example.com/`. */
  readonly outgoing?: Partial<OutgoingRequest> | undefined;
}

/** What is inside an onion. */
export interface InsideInput<N extends AroundStage> {
  /**
   * Default an answer as the service signs it, or `null` with status 200 for `callApi`. What it throws, `next` of the plugin
   * throws as a refusal.
   */
  next?(value: AroundValue<N>): Awaitable<ResultOf<N>>;
}

type Takes<N extends StageName> = Row<N>['takes'][number];

/** The values of a stage, by their names in the table of stages. */
export type StageInput<N extends StageName> = (N extends keyof ShortInputs
  ? ShortInputs[N]
  : Pick<DefaultInputs, Takes<N> & keyof DefaultInputs> &
      Readonly<Pick<Values, Exclude<Takes<N>, keyof DefaultInputs>>>) &
  (N extends AroundStage ? InsideInput<N> : unknown) &
  // The variant of a route is what the request goes to.
  (N extends Exclude<VariantStage, 'route'> ? { readonly variant: string } : unknown);

/** What a stage comes to; `onHttpRequest` lets go on, or refuses. */
export type StageOutcome<N extends StageName> = HookOutcome<
  N extends 'onHttpRequest' ? never : NonNullable<ResultOf<N>>
>;
