import type { Awaitable, CallContext, Json, Parameters } from '../../kernel/values.ts';
import type { Hex } from '../../lib/eth/hex.ts';
import type { Memo } from './memo.ts';

/** The context that every public hook gets. It is frozen, except for the memo: a hook changes a request only by its result. */
export interface HookContext extends CallContext {
  /**
   * The plugin's own object for this request: its later hooks find the members that a hook sets. It is read once, when the hook
   * has succeeded, and must be JSON of at most 4,096 bytes.
   */
  readonly memo: Memo;
  /** The id of this request, as in the `X-Request-Id` header and the log. */
  readonly requestId: Hex;
  readonly endpointId: Hex;
  /** Name of the API in the config. */
  readonly api: string;
  /** Name of the endpoint in the config. */
  readonly endpoint: string;
}

/** Context of `onHttpRequest`: the request, before authentication. */
export interface HttpRequestContext extends HookContext {
  /** The parameters as sent by the client, undeclared ones included. */
  readonly parameters: Parameters;
  /** The headers by lower-case name, without other plugins' `credentials`. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The client's IP address. */
  readonly ip: string;
}

/** Context of `onBeforeApiCall`: the parameters that go upstream. */
export interface BeforeApiCallContext extends HookContext {
  /** Values of declared parameters, given by the client or by default; never fixed or secret ones. */
  readonly parameters: Parameters;
}

/** Context of `onAfterApiCall`: the upstream's answer, before encoding. */
export interface AfterApiCallContext extends BeforeApiCallContext {
  readonly response: { readonly data: Json; readonly status: number };
}

/** Context of `onBeforeSign`: the bytes to sign. */
export interface BeforeSignContext extends HookContext {
  /** The encoded (or encrypted) bytes. */
  readonly data: Hex;
}

/** A signed answer, without the members that a mode adds. */
export interface SignedAnswer {
  readonly node: Hex;
  readonly endpointId: Hex;
  /** Unix seconds. */
  readonly timestamp: number;
  readonly signature: Hex;
  /** The value, under a name such as `data` or `rawData`, and any further members. */
  readonly [member: string]: Json;
}

/** Context of `onResponseSent`: the signed answer. */
export interface ResponseSentContext extends HookContext {
  /** The answer that was sent. It is frozen, and parsed on first use. */
  readonly answer: SignedAnswer;
  /** Milliseconds since the request arrived. */
  readonly duration: number;
  readonly status: number;
}

/** Context of `onError`: the request that failed, and why. */
export interface ErrorContext extends Pick<HookContext, 'signal' | 'memo'> {
  readonly requestId: Hex;
  /** The endpoint's ID. For a request that matched no endpoint, the id as sent; then there are no names. */
  readonly endpointId: string;
  readonly api: string | undefined;
  readonly endpoint: string | undefined;
  /** An error whose message is the text that the client gets. */
  readonly error: Error;
  /** The stage that refused or failed. */
  readonly stage: string;
  readonly status: number;
}

interface Rejection {
  readonly reject: boolean;
  /** An HTTP status from 400 to 599; default 403. */
  readonly status?: number;
  readonly message?: string;
}

/** The public hooks: each takes one frozen context, and returns a small object or nothing. */
export interface PublicHooks {
  onHttpRequest(context: HttpRequestContext): Awaitable<Rejection | undefined | void>;
  onBeforeApiCall(context: BeforeApiCallContext): Awaitable<{ readonly parameters: Parameters } | undefined | void>;
  onAfterApiCall(
    context: AfterApiCallContext,
  ): Awaitable<{ readonly data: unknown; readonly status?: number } | undefined | void>;
  onBeforeSign(context: BeforeSignContext): Awaitable<{ readonly data: string } | undefined | void>;
  onResponseSent(context: ResponseSentContext): Awaitable<unknown>;
  onError(context: ErrorContext): Awaitable<unknown>;
}
