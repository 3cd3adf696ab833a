import type { Exchange } from '../../kernel/exchange.ts';
import type { ArgsOf, AroundStage, StageName, VariantStage } from '../../kernel/stages.ts';
import type { Hex } from '../../lib/eth/hex.ts';
import type {
  ApiResponse,
  Awaitable,
  Endpoint,
  Json,
  OutgoingRequest,
  Parameters,
  Question,
  SignedResponse,
} from '../kernel.ts';
import type { InnerStage } from '../stage-functions.ts';

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
  /** See {@link testEndpoint}. */
  readonly endpoint?: Endpoint | undefined;
  /** The id as sent of a request that matches no endpoint; `onError` is the only hook that ever sees such a request. */
  readonly unknownEndpoint?: string | undefined;
}

/** A request to a route. */
export interface RouteInput extends Pick<RequestInput, 'headers' | 'ip'> {
  /** Values of the path's parameters, by name; default none. */
  readonly params?: Readonly<Record<string, string>> | undefined;
  /** As text (`a=1&a=2`) or by name; default none. */
  readonly query?: string | Readonly<Record<string, string>> | undefined;
  /** Default none. A route gets no more than its `maxBody`. */
  readonly body?: string | Uint8Array | undefined;
}

export interface BeforeApiCallInput {
  /** Values of declared parameters; default those of the request. */
  readonly parameters?: Parameters | undefined;
}

export interface AfterApiCallInput extends BeforeApiCallInput {
  /** The upstream's answer; default `null`. */
  readonly data?: Json | undefined;
  /** Default 200. */
  readonly status?: number | undefined;
}

export interface BeforeSignInput {
  /** The encoded bytes as `0x` hex; default a zero word of 32 bytes. */
  readonly data?: Hex | undefined;
}

export interface ResponseSentInput {
  /** Default 200. */
  readonly status?: number | undefined;
  /** Milliseconds; default the time since the request was made. */
  readonly duration?: number | undefined;
  /** Members of the signed answer; the others have values of a test's own. */
  readonly answer?: Readonly<Record<string, Json>> | undefined;
}

/** What {@link testQuestion} makes a question of; default a GET without parameters. */
export interface QuestionInput {
  readonly parameters?: Parameters | undefined;
  readonly reserved?: Parameters | undefined;
  readonly request?: Partial<OutgoingRequest> | undefined;
  readonly key?: string | undefined;
  readonly requestHash?: Hex | undefined;
}

export interface AnswerInput {
  readonly question?: Question | undefined;
  /** What is inside; default an answer as the service signs it. What it throws, `next` of the plugin throws as a refusal. */
  next?(question: Question): Awaitable<SignedResponse>;
}

export interface CallApiInput {
  /** Default a GET of `https://api.example.com/`. */
  readonly request?: Partial<OutgoingRequest> | undefined;
  /** What is inside; default `null` with status 200. What it throws, `next` of the plugin throws as a refusal. */
  next?(request: OutgoingRequest): Awaitable<ApiResponse>;
}

/** Stages that are run by their names: an onion has something inside, and so a function of its own. */
export type NamedStage = Exclude<InnerStage, AroundStage>;

export interface ErrorInput {
  /** What the client got; default 502. */
  readonly status?: number | undefined;
  /** What the client got; default `API call failed`. */
  readonly message?: string | undefined;
  /** The stage that failed; default `callApi`. */
  readonly stage?: StageName | undefined;
}

/** What {@link TestRequest.stage} takes for a stage: the variant, where the stage has variants, then its arguments. */
export type StageInput<N extends StageName> = N extends VariantStage
  ? [variant: string, ...given: WithoutExchange<ArgsOf<N>>]
  : WithoutExchange<ArgsOf<N>>;
type WithoutExchange<A> = A extends [...infer Given, Exchange] ? Given : never;
