import type { Hex } from '../../lib/eth/hex.ts';
import type { Awaitable, CallContext, Json, Parameters } from '../kernel.ts';
import type { Memo } from './memo.ts';

/** What every public hook gets. Frozen, but for the memo; the only way to change something is to return it. */
export interface HookContext extends CallContext {
  /**
   * What this plugin keeps of this request: what a hook leaves in it, its next hooks find. It is read once, when the hook has ended
   * well, and has to be JSON of at most 4,096 bytes.
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
  /** As sent by the client, undeclared ones included. */
  readonly parameters: Parameters;
  /** Lower-case names, without those that other plugins have as `credentials`. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly ip: string;
}

/** Context of `onBeforeApiCall`: the parameters that go upstream. */
export interface BeforeApiCallContext extends HookContext {
  /** Client and default values of declared parameters; never fixed or secret ones. */
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

/** A signed answer, without what a mode adds to it. */
export interface SignedAnswer {
  readonly node: Hex;
  readonly endpointId: Hex;
  /** Unix seconds. */
  readonly timestamp: number;
  readonly signature: Hex;
  /** Such as `data` or `rawData`. */
  readonly [member: string]: Json;
}

/** Context of `onResponseSent`: the signed answer. */
export interface ResponseSentContext extends HookContext {
  /** What was sent. Frozen, and parsed when it is first looked at. */
  readonly answer: SignedAnswer;
  /** Milliseconds from the arrival of the request. */
  readonly duration: number;
  readonly status: number;
}

/** Context of `onError`: the request that failed, and why. */
export interface ErrorContext extends Pick<HookContext, 'signal' | 'memo'> {
  readonly requestId: Hex;
  /** Of a request that matched no endpoint: the id as sent, and no names. */
  readonly endpointId: string;
  readonly api: string | undefined;
  readonly endpoint: string | undefined;
  /** Its message is the text that the client gets. */
  readonly error: Error;
  /** The stage that refused or failed. */
  readonly stage: string;
  readonly status: number;
}

interface Rejection {
  readonly reject: boolean;
  /** 400 to 599, default 403. */
  readonly status?: number;
  readonly message?: string;
}

/** The hooks that operators' plugins know: one frozen context in, a small object or nothing out. */
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
