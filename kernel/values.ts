import type { IncomingMessage } from 'node:http';
import type { Refusal } from './refusal.ts';

export type Hex = `0x${string}`;
/** Any value that JSON can carry. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
/** The parameters of a request by name. */
export type Parameters = Readonly<Record<string, Json>>;
export type Headers = Readonly<Record<string, string>>;
export type Proof = Readonly<Record<string, unknown>>;
export type Awaitable<T> = T | Promise<T>;

/** One configured way to authenticate; `type` names the variant of the stage that checks it. */
export type AuthMethod = Readonly<Record<string, unknown>> & { readonly type: string };

/** A configured endpoint, validated and identified. Plugins read their own keys of it through their config keys. */
export interface Endpoint {
  readonly id: Hex;
  readonly api: string;
  readonly name: string;
  readonly mode: string;
  /** Tried in order; never empty. */
  readonly auth: readonly AuthMethod[];
  /** Its block of the config file. */
  readonly block: Readonly<Record<string, unknown>>;
  /** The block of its API. */
  readonly apiBlock: Readonly<Record<string, unknown>>;
}

/** An HTTP request as it arrived, its body unread. */
export interface HttpRequest {
  readonly request: IncomingMessage;
  /** Koa's `Context` of it, made when it is first asked for. */
  readonly ctx: object;
  /** @param max bytes. @throws Refusal 413 for more, 499 for a body that ends early. */
  readBody(max: number): Promise<Buffer>;
}

/** What the handler of a route gets of a request. */
export interface RouteRequest {
  /** Values of the path's parameters, for the route alone: they may be bearer secrets. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The body as it was sent; empty unless the route reads one. */
  readonly body: Uint8Array;
}

/** Text that is known to be JSON. */
export interface CheckedJson {
  readonly json: string;
}

/** A signed answer in the form in which clients get it. */
export interface SignedResponse extends CheckedJson {
  /** The same JSON object with other members in front. */
  with(members: Readonly<Record<string, unknown>>): CheckedJson;
}

/** A body that is sent as it comes: texts and bytes in turn. It ends with the client and with a drain. */
export type BodyStream = AsyncIterable<string | Uint8Array>;

/** What goes back over HTTP; a text is sent as JSON, and checked to be, unless the headers name another media type. */
export interface HttpResponse {
  readonly status: number;
  readonly headers?: Headers;
  /** A stream needs a media type other than JSON. */
  readonly body: string | Uint8Array | CheckedJson | BodyStream;
}

/** A request to the upstream. Its headers and, with secret parameters, all of it may hold the operator's credentials. */
export interface OutgoingRequest {
  readonly method: string;
  readonly url: string;
  /** Those of the message; what concerns the connection alone (Host, Connection, lengths, codings) is the client's. */
  readonly headers: Headers;
  readonly body: string | undefined;
  /** Go with this one call and say nothing of what is asked: no proof has them, and `headers` win. */
  readonly callHeaders?: Headers | undefined;
  /** Milliseconds for this one call, where that is less than the API's `timeout`. */
  readonly timeout?: number | undefined;
}

/** What a request asks, made once of its final parameters: all that tells its answer from others comes from it. */
export interface Question {
  /** Values of declared parameters, the client's and defaults; never fixed or secret ones. */
  readonly parameters: Parameters;
  /** The reserved parameters that the endpoint takes, as they were sent. */
  readonly reserved: Parameters;
  readonly request: OutgoingRequest;
  /** 43 characters that tell its answer from all others of the same config; made when first asked for. */
  readonly key: string;
  /** What a receipt of the answer signs; only on endpoints whose answers carry one. */
  readonly requestHash: Hex | undefined;
  /**
   * The question that goes upstream with other parameters. Key and request hash stay: they say what the client asked.
   * @throws Refusal 400 for parameters that no client could have sent.
   */
  with(parameters: Parameters): Question;
}

/** What an upstream answered. */
export interface ApiResponse {
  readonly data: Json;
  readonly status: number;
  /** The JSON text that `data` was parsed from: it holds digits that a double loses. Absent once a plugin replaced the data. */
  readonly text?: string;
  /** What was sent for it; absent where a plugin made the response by itself. */
  readonly request?: OutgoingRequest | undefined;
}

/** What `encode` makes of an upstream answer. */
export interface Encoded {
  /** What gets signed. */
  readonly bytes: Hex;
  /** The response field that shows it. */
  readonly field: string;
  /** What the field holds: any JSON. Where that is `bytes` itself, later stages may still replace both. */
  readonly value: unknown;
}

/** What `sign` is asked for: the signature of one answer. */
export interface SignRequest {
  readonly endpointId: Hex;
  /** Unix seconds. */
  readonly timestamp: number;
  readonly data: Hex;
  /** Whether the data is the hash of what is shown, rather than shown itself; default false. */
  readonly isHash?: boolean;
  /** Of the question; where there is one, the receipt of the answer is to be signed, too. */
  readonly requestHash?: Hex | undefined;
}

/** What `sign` returns: who signed, and the signature. */
export interface Signed {
  readonly node: Hex;
  readonly signature: Hex;
  /** Further members of the answer, by whoever signs: other signatures of the same answer. */
  readonly beside?: Readonly<Record<string, Json>> | undefined;
}

/** All that a signed answer consists of. */
export interface SignedParts extends Signed, Omit<SignRequest, 'isHash' | 'requestHash'>, Omit<Encoded, 'bytes'> {
  readonly proof: Proof | undefined;
}

/**
 * The rest of the pipeline: an answer, approved and concluded. It is to be called before `present` ends, and once; a mode that `repeats`
 * may call it again, also while its body streams. `detached` unties it from the client's connection; it begins `after` something else.
 */
export type Run = (options?: {
  readonly detached?: boolean;
  readonly after?: Promise<unknown>;
}) => Promise<SignedResponse>;

/** How a request ended; `abandoned`: the client left before there was an answer. */
export type RequestOutcome =
  | { readonly kind: 'signed'; readonly response: SignedResponse }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'abandoned' };

/** What a plugin's function may use to learn that it should stop. */
export interface CallContext {
  /** Aborts when the plugin's budget ends or the client disconnects. */
  readonly signal: AbortSignal;
}

/** What stages take and return, by the names under which the table of stages speaks of it. */
export interface Values {
  /** An endpoint's id as the client sent it. */
  id: string;
  httpRequest: HttpRequest;
  request: RouteRequest;
  httpResponse: HttpResponse;
  endpoint: Endpoint;
  method: AuthMethod;
  allowed: true;
  /** Nothing: whoever lets an answer out speaks for nobody else. */
  approved: undefined;
  rejection: Refusal;
  parameters: Parameters;
  run: Run;
  question: Question;
  /** What plugins vary the answers of a question by. */
  variation: string;
  outgoing: OutgoingRequest;
  response: ApiResponse;
  encoded: Encoded;
  data: Hex;
  signRequest: SignRequest;
  signed: Signed;
  proof: Proof;
  signedResponse: SignedResponse;
  outcome: RequestOutcome;
  headers: Headers;
  status: number;
  refusal: Refusal;
}
