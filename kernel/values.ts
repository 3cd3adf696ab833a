import type { IncomingMessage } from 'node:http';
import type { Refusal } from './refusal.ts';

export type Hex = `0x${string}`;
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
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
  /** The endpoint's block of the config file. */
  readonly own: Readonly<Record<string, unknown>>;
  /** The block of its API. */
  readonly shared: Readonly<Record<string, unknown>>;
}

/** An HTTP request as it arrived, its body unread. */
export interface HttpRequest {
  readonly request: IncomingMessage;
  /** Koa's view of it, made when it is first asked for; `koaContext` of the SDK knows its type. */
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

/** What goes back over HTTP; a text is sent as JSON, and checked to be, unless the headers name another media type. */
export interface HttpResponse {
  readonly status: number;
  readonly headers?: Headers;
  readonly body: string | Uint8Array | CheckedJson;
}

/** What an upstream answered. */
export interface ApiResponse {
  readonly data: Json;
  readonly status: number;
  /** The JSON text that `data` was parsed from: it holds digits that a double loses. Absent once a plugin replaced the data. */
  readonly text?: string;
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

export interface SignRequest {
  readonly endpointId: Hex;
  /** Unix seconds. */
  readonly timestamp: number;
  readonly data: Hex;
  /** Whether the data is the hash of what is shown, rather than shown itself; default false. */
  readonly isHash?: boolean;
}

export interface Signed {
  readonly node: Hex;
  readonly signature: Hex;
  /** Further members of the answer, by whoever signs: other signatures of the same answer. */
  readonly beside?: Readonly<Record<string, Json>> | undefined;
}

/** All that a signed answer consists of. */
export interface SignedParts extends Signed, Omit<SignRequest, 'data' | 'isHash'>, Omit<Encoded, 'bytes'> {
  readonly proof: Proof | undefined;
}

/** The rest of the pipeline, to be called once. `detached` unties it from the client's connection. */
export type Run = (options?: { readonly detached?: boolean }) => Promise<SignedResponse>;

/** How a request ended; `abandoned`: the client left before there was an answer. */
export type Outcome =
  | { readonly kind: 'signed'; readonly response: SignedResponse }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'abandoned' };

/** What a plugin's function may use to learn that it should stop. */
export interface Call {
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
  rejection: Refusal;
  parameters: Parameters;
  run: Run;
  response: ApiResponse;
  encoded: Encoded;
  data: Hex;
  signRequest: SignRequest;
  signed: Signed;
  proof: Proof;
  signedResponse: SignedResponse;
  outcome: Outcome;
  headers: Headers;
  status: number;
  refusal: Refusal;
}
