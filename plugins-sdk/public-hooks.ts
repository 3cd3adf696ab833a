import { isPlain, isRecord } from '../kernel/plain-json.ts';
import { clientIp } from './context-keys.ts';
import { contextOf, errorContextOf, keepMemo } from './hook-context.ts';
import {
  type ApiResponse,
  type Awaitable,
  type Call,
  type Contracts,
  type Exchange,
  type Hidden,
  type Json,
  type OutgoingRequest,
  type Parameters,
  Refusal,
  WrongShape,
} from './kernel.ts';
import { type Hex, isHex } from './lib/eth/hex.ts';
import { atOnce, STEP, type Steps } from './lib/json/turns.ts';
import { deepFreeze } from './lib/objects/deep-freeze.ts';
import { nearest } from './lib/text/suggest.ts';
import type { Memo } from './memo.ts';
import { LongResponse } from './results/long-response.ts';
import { plainText, SentJson } from './results/plain.ts';

export { deepFreeze };

/** What every public hook gets. Frozen, but for the memo; the only way to change something is to return it. */
export interface HookContext extends Call {
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

export interface HttpRequestContext extends HookContext {
  /** As sent by the client, undeclared ones included. */
  readonly parameters: Parameters;
  /** Lower-case names, without those that other plugins have as `credentials`. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly ip: string;
}

export interface BeforeApiCallContext extends HookContext {
  /** Client and default values of declared parameters; never fixed or secret ones. */
  readonly parameters: Parameters;
}

export interface AfterApiCallContext extends BeforeApiCallContext {
  readonly response: { readonly data: Json; readonly status: number };
}

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

export interface ResponseSentContext extends HookContext {
  /** What was sent. Frozen, and parsed when it is first looked at. */
  readonly answer: SignedAnswer;
  /** Milliseconds from the arrival of the request. */
  readonly duration: number;
  readonly status: number;
}

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

export interface Rejection {
  readonly reject: boolean;
  /** 400 to 599, default 403. */
  readonly status?: number;
  readonly message?: string;
}

function headersFor(exchange: Exchange, hidden: Hidden): HttpRequestContext['headers'] {
  const headers: Record<string, string | undefined> = {};
  for (const name in exchange.headers) if (!hidden.has(name)) headers[name] = exchange.headers[name];
  return Object.freeze(headers);
}

/** Characters of JSON of parameters, which are read in one turn: a client may send half as many. */
export const MAX_PARAMETERS = 128 * 1024;
/** Characters of bytes in hex. */
const MAX_DATA = 2 + 2 * 1024 * 1024;
/** Characters of the text that a rejected client gets. */
const MAX_MESSAGE = 8192;

/** @param known other members that the result may have. */
function member(result: unknown, key: string, known: readonly string[] = []): unknown {
  if (!isRecord(result) || !(key in result)) throw new WrongShape(`returned no object with "${key}"`);
  for (const name of Object.keys(result)) {
    if (name === key || known.includes(name)) continue;
    // What else a plugin returns means nothing, but a misspelt status would have an answer signed.
    const meant = nearest(name, [key, ...known]);
    if (meant !== undefined) throw new WrongShape(`returned a member "${name}", did you mean "${meant}"?`);
  }
  return result[key];
}

function isStatus(status: unknown, from: number): status is number {
  return typeof status === 'number' && Number.isInteger(status) && status >= from && status <= 599;
}

/** Reads what `onHttpRequest` returned. */
export function takeRejection(result: unknown, plugin: string): Refusal | undefined {
  const reject = member(result, 'reject', ['status', 'message']);
  if (reject === false) return undefined;
  if (reject !== true) throw new WrongShape('"reject" is no boolean');
  const { status = 403, message = `Request rejected by plugin "${plugin}"` } = isRecord(result) ? result : {};
  if (!isStatus(status, 400)) throw new WrongShape('"status" is no HTTP error status');
  if (typeof message !== 'string') throw new WrongShape('"message" is no string');
  if (message.length > MAX_MESSAGE) throw new WrongShape(`"message" is longer than ${MAX_MESSAGE} characters`);
  return new Refusal(status, message, { reason: `rejected by plugin "${plugin}"` });
}

/** Reads what `onBeforeApiCall` returned. */
export function takeParameters(result: unknown): Parameters {
  const parameters = member(result, 'parameters');
  if (!isRecord(parameters) || !isPlain(parameters)) throw new WrongShape('"parameters" is no object');
  return deepFreeze(JSON.parse(atOnce(plainText(parameters, MAX_PARAMETERS))) as Parameters);
}

/** Reads what `onAfterApiCall` returned. */
export function takeResponse(result: unknown, current: ApiResponse): Steps<ApiResponse> {
  const data = member(result, 'data', ['status']);
  const { status = current.status } = isRecord(result) ? result : {};
  if (!isStatus(status, 100)) throw new WrongShape('"status" is no HTTP status');
  return copyInSteps(status, data, current.request);
}

/** An answer of a plugin's own: a copy that is plain JSON, in steps where it is large. @throws WrongShape */
export function* copyInSteps(status: number, data: unknown, request?: OutgoingRequest): Steps<ApiResponse> {
  const text = data instanceof SentJson ? data.text : yield* plainText(data);
  if (text.length > STEP) return yield* LongResponse.read(status, Buffer.from(text), request);
  return { data: JSON.parse(text), status, ...(request && { request }) };
}

/** Reads what `onBeforeSign` returned. */
export function takeData(result: unknown): Hex {
  const data = member(result, 'data');
  if (!isHex(data)) throw new WrongShape('"data" is no hex string of whole bytes');
  if (data.length > MAX_DATA) throw new WrongShape('"data" is longer than 1 MiB');
  return data;
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

/** Characters of JSON up to which a copy costs less than the means to make it later. */
const SMALL = 16 * 1024;

function copyOf(response: ApiResponse): ApiResponse['data'] {
  return JSON.parse(jsonOf(response));
}

/** An empty text stands for an answer without a body. */
function jsonOf({ data, text }: ApiResponse): string {
  return text || JSON.stringify(data);
}

/** Of views whose data is made when it is asked for. */
const large = new WeakMap<object, ApiResponse>();

/** The JSON of a large answer that a hook would get a copy of. */
export function responseTextOf(view: object): string | undefined {
  const response = large.get(view);
  return response && jsonOf(response);
}

/** A copy of large data is made only for a hook that looks at it: it costs milliseconds. */
function responseView(response: ApiResponse): AfterApiCallContext['response'] {
  const { status, text } = response;
  if (text !== undefined && text.length <= SMALL) return Object.freeze({ data: copyOf(response), status });
  let copy: ApiResponse['data'] | undefined;
  const view = Object.freeze({
    get data() {
      copy ??= copyOf(response);
      return copy;
    },
    status,
  });
  large.set(view, response);
  return view;
}

/** How the guard turns the arguments of a public stage into a context, and what a hook returned into the stage's result. */
export const publicHooks: Contracts['contexts'] = {
  onHttpRequest: {
    context: ([exchange], call, hidden, plugin) => {
      const { parameters } = exchange;
      const own = { parameters, headers: headersFor(exchange, hidden), ip: clientIp(exchange) };
      return contextOf<HttpRequestContext>(exchange, call, plugin, own);
    },
    accept: (value, _, plugin) => takeRejection(value, plugin),
    ended: keepMemo,
  },
  onBeforeApiCall: {
    context: ([parameters, exchange], call, _, plugin) =>
      contextOf<BeforeApiCallContext>(exchange, call, plugin, { parameters }),
    accept: takeParameters,
    ended: keepMemo,
  },
  onAfterApiCall: {
    context: ([response, parameters, exchange], call, _, plugin) =>
      contextOf<AfterApiCallContext>(exchange, call, plugin, { parameters, response: responseView(response) }),
    accept: (value, [response]) => takeResponse(value, response),
    ended: keepMemo,
  },
  onBeforeSign: {
    context: ([data, exchange], call, _, plugin) => contextOf<BeforeSignContext>(exchange, call, plugin, { data }),
    accept: takeData,
    ended: keepMemo,
  },
  onResponseSent: {
    context: ([status, answer, exchange], call, _, plugin) => {
      const own = { duration: exchange.elapsed(), status };
      return contextOf<ResponseSentContext>(exchange, call, plugin, own, answer);
    },
    accept: () => undefined,
    ended: keepMemo,
  },
  onError: {
    context: ([refusal, id, exchange], call, _, plugin) => {
      const { stage = 'unknown', status } = refusal;
      return errorContextOf(exchange, id, call, plugin, { error: new Error(refusal.message), stage, status });
    },
    accept: () => undefined,
    ended: keepMemo,
  },
};
