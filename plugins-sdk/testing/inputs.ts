import type { Refusal } from '../../kernel/refusal.ts';
import type { AroundStage, AroundValue, ResultOf, Row, StageName, VariantStage } from '../../kernel/stages.ts';
import type { Awaitable, Endpoint, Json, OutgoingRequest, Parameters, Question, Values } from '../../kernel/values.ts';
import type { Hex } from '../../lib/eth/hex.ts';

/** The outcome of a request at one stage. */
export type HookOutcome<Value> =
  /** The request goes on unchanged: the plugin has no such hook, or returned nothing or the same value. */
  | { readonly passed: true }
  /** The request goes on with the plugin's value, in the form that the next stage gets. */
  | { readonly value: Value }
  /** The request ends with this response to the client. */
  | { readonly refused: Refused };

/** A response that refuses a request; `deepEqual` compares its status and message alone. */
export type Refused = Readonly<Pick<Refusal, 'status' | 'message' | 'headers' | 'body'>>;

/** A fault of the plugin that the service would log. */
export interface Complaint {
  readonly hook: string;
  readonly requestId: string;
  /** One line: the error (`Error: no route`), the fault in the result, or how the budget was spent. */
  readonly message: string;
  /** The message with the stack, if there is one. */
  readonly detail: string;
}

/** A test's request; every member has a default. */
export interface RequestInput {
  /** The parameters as the client sent them; default none. */
  readonly parameters?: Parameters | undefined;
  /** Headers by names in any case; hooks see lower-case names, without headers that carry credentials. Default none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The client's IP address; default `127.0.0.1`. */
  readonly ip?: string | undefined;
  /** The endpoint; default the first of the `endpoints` that the plugin got, else that of {@link testEndpoint}. */
  readonly endpoint?: Endpoint | undefined;
  /** The id as sent, for a request that matches no endpoint. Of the hooks only `onError` ever sees such a request. */
  readonly unknownEndpoint?: string | undefined;
  /** One of the plugin's routes instead of an endpoint, as registered: `GET /tenants/:name`. The stage `admit` is left out. */
  readonly route?: string | undefined;
}

/** Inputs of stages that a test gives in a shorter form than the table of stages has; every member has a default. */
export interface ShortInputs {
  /** The request to a route, which gets a body only up to its `maxBody`. */
  readonly route: {
    /** Values of the path's parameters, by name; default none. */
    readonly params?: Readonly<Record<string, string>> | undefined;
    /** The query as text (`a=1&a=2`) or by name; default none. */
    readonly query?: string | Readonly<Record<string, string>> | undefined;
    /** The body; default none. */
    readonly body?: string | Uint8Array | undefined;
  };
  /** The upstream's response, by default `null` with status 200, and the values of declared parameters. */
  readonly onAfterApiCall: {
    readonly data?: Json | undefined;
    readonly status?: number | undefined;
    readonly parameters?: Parameters | undefined;
  };
  readonly onResponseSent: {
    /** The HTTP status; default 200. */
    readonly status?: number | undefined;
    /** Milliseconds since the request arrived; default the real time since the test made it. */
    readonly duration?: number | undefined;
    /** Members of the signed answer; the others get sample values. */
    readonly answer?: Readonly<Record<string, Json>> | undefined;
  };
  /** The client's response and the stage that failed; default 502 `API call failed` at `callApi`. */
  readonly onError: {
    readonly status?: number | undefined;
    readonly message?: string | undefined;
    readonly stage?: StageName | undefined;
  };
}

/** Inputs of stages that have defaults. */
export interface DefaultInputs {
  /** Parameters; default those of the request. */
  readonly parameters?: Parameters | undefined;
  /** Bytes as `0x` hex; default a zero word of 32 bytes. */
  readonly data?: Hex | undefined;
  /** The question, an `AskedQuestion`; default one without parameters. */
  readonly question?: Question | undefined;
  /** The upstream request; default a GET of `https://api.example.com/`. */
  readonly outgoing?: Partial<OutgoingRequest> | undefined;
}

/** The inside of an around stage. */
export interface InsideInput<N extends AroundStage> {
  /**
   * Returns the result of the rest of the chain; default a signed answer, or `null` with status 200 for `callApi`. If it throws,
   * the plugin's `next` throws a refusal.
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
  // The variant of `route` is the request's own route.
  (N extends Exclude<VariantStage, 'route'> ? { readonly variant: string } : unknown);

/** The outcome of a stage. At `onHttpRequest` a request only passes or is refused. */
export type StageOutcome<N extends StageName> = HookOutcome<
  N extends 'onHttpRequest' ? never : NonNullable<ResultOf<N>>
>;
