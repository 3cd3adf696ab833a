import type { Hex } from './hex.ts';
import { ContextKey, type Exchange, type Json, type Parameters, type Refusal } from './kernel.ts';

/** The client's address where a plugin knows better than the socket (a trusted proxy in front); left at `admit`. */
export const clientAddress = new ContextKey<string>('clientAddress', { once: true });

/** The client's IP address. */
export function clientIp(exchange: Exchange): string {
  return clientAddress.get(exchange) ?? exchange.socketAddress;
}

/**
 * Who is asking, by the operator's own name for that client; left at `authenticate` by the plugin that let it in. It stands in the log,
 * so it must be no secret.
 */
export const clientName = new ContextKey<string>('clientName');

/** The bytes of the body as the client sent them, for those who check a signature over them; left at `read`. */
export const rawBody = new ContextKey<Uint8Array>('rawBody', { once: true });

/**
 * The names of parameters with a number in them that a double does not hold exactly, so that their values are rounded. Left
 * at `read`, where there are such parameters.
 */
export const inexactParameters = new ContextKey<ReadonlySet<string>>('inexactParameters', { once: true });

/** The parts of an upstream request that come from parameters. */
export interface RequestParts {
  /** Path template with every placeholder replaced by its percent-encoded value. */
  readonly path: string;
  /** `name=value` pairs, percent-encoded and joined; empty when there are none. */
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Value of the `Cookie` header. */
  readonly cookie: string | undefined;
  /** JSON text of the body. */
  readonly body: string | undefined;
}

export interface ResolvedParameters {
  /** The value of every declared parameter in the order of the config, secret ones included; `undefined` when it has none. */
  readonly values: readonly (Json | undefined)[];
  /**
   * Places the parameters that plugins may have changed, together with those that they never see.
   * @throws Refusal 400
   */
  place(visible: Parameters): RequestParts;
}

/** Left by the plugin that owns `parameters`, at `validate`. */
export const resolvedParameters = new ContextKey<ResolvedParameters>('resolvedParameters', { once: true });

/** The reserved parameters that decide how this answer is encoded, in a fixed order; left at `validate`. */
export const encodingChoice = new ContextKey<readonly string[]>('encodingChoice', { once: true });

/** A request as it went upstream. Its headers and, with secret parameters, all of it may hold the operator's credentials. */
export interface SentRequest {
  readonly method: string;
  readonly url: string;
  /** Those of the message; what concerns the connection alone (Host, Connection, lengths, codings) is the client's. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body: string | undefined;
}

/** Left by the plugin that calls the API, at `callApi`. */
export const sentRequest = new ContextKey<SentRequest>('sentRequest', { once: true });

/** What a request has gone through before it is its turn to call the API. */
export interface VainWait {
  /** Milliseconds that it has waited for the calls of others. */
  readonly waited: number;
  /** How the call that it waited for has ended, when it is to end in the same way. */
  readonly refusal?: Refusal | undefined;
}

/** Left at `lookup` by the plugin that has requests wait for each other; without it there was no such wait. */
export const vainWait = new ContextKey<VainWait>('vainWait', { once: true });

/** Headers that go out with the answer itself, for modes that give the answer in a response. */
export const answerHeaders = new ContextKey<Readonly<Record<string, string>>>('answerHeaders');

/** Adds to {@link answerHeaders}, at any stage before the answer is there for its client. */
export function addAnswerHeaders(exchange: Exchange, headers: Readonly<Record<string, string>>): void {
  answerHeaders.set(exchange, { ...answerHeaders.get(exchange), ...headers });
}

/** keccak256 of the canonical JSON of what an endpoint with receipts was asked; left at `validate`, signed at `sign`. */
export const requestHash = new ContextKey<Hex>('requestHash', { once: true });
