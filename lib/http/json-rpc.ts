import { jsonIn } from '../json/value.ts';
import { type BoundedResponse, type HttpClient, RequestFailure, type RequestFailureKind } from './client/index.ts';
import type { HttpTarget } from './target.ts';

/** Thrown when a node gave no usable answer. The message is safe to log: it has no URL path and no text of the node in it. */
export class JsonRpcFailure extends Error {
  override readonly name = 'JsonRpcFailure';
  /** The code of the JSON-RPC error object, if the node sent one. */
  readonly code: number | undefined;
  /** How the HTTP request failed, if no answer could be read. */
  readonly kind: RequestFailureKind | undefined;

  constructor(message: string, code?: number, kind?: RequestFailureKind) {
    super(message);
    this.code = code;
    this.kind = kind;
  }
}

/** The limits of one request to a node. */
export interface JsonRpcLimits {
  /** Milliseconds for the whole request. */
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/**
 * Sends one request to a node, over JSON-RPC 2.0.
 * @param params positional (an array) or named (an object).
 * @returns the `result`, of any shape.
 * @throws JsonRpcFailure naming the method.
 */
export type JsonRpc = (method: string, params: object, limits: JsonRpcLimits) => Promise<unknown>;

/** Most bytes of an answer: a receipt with some thousand events fits, and a block with some ten thousand transaction hashes. */
const LARGEST_ANSWER = 1024 * 1024;

/** Creates a JSON-RPC client of one node. @param maxBytes largest acceptable answer. Default 1 MiB. */
export function createJsonRpc(client: HttpClient, target: HttpTarget, maxBytes = LARGEST_ANSWER): JsonRpc {
  const { url } = target;
  const headers = { 'content-type': 'application/json', accept: 'application/json', ...target.headers };
  let lastId = 0;
  return async (method, params, limits) => {
    lastId += 1;
    const id = lastId;
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params });
    const answer = await client.request({ ...limits, method: 'POST', url, headers, body, maxBytes }).catch((error) => {
      if (!(error instanceof RequestFailure)) throw error;
      throw new JsonRpcFailure(`${method}: ${error.kind}: ${error.message}`, undefined, error.kind);
    });
    return resultOf(answer, id, method);
  };
}

function resultOf({ status, body }: BoundedResponse, asked: number, method: string): unknown {
  const failed = (why: string, code?: number) => new JsonRpcFailure(`${method}: ${why}`, code);
  if (status !== 200) throw failed(`HTTP status ${status}`);
  const answer = jsonIn(body.toString());
  if (answer === undefined) throw failed('the answer is no JSON');
  if (typeof answer !== 'object' || answer === null) throw failed('the answer is no object');
  const { jsonrpc, id, error, result }: Readonly<Record<string, unknown>> = { ...answer };
  if (jsonrpc !== '2.0') throw failed('the answer is not JSON-RPC 2.0');
  if (id !== asked) throw failed('the answer belongs to another question');
  // The error's message is left out, since it may quote a key from the URL.
  const { code }: { readonly code?: unknown } = Object(error);
  if (typeof code === 'number') throw failed(`error ${code}`, code);
  // Some nodes send `"error": null` beside a result.
  if (error !== undefined && error !== null) throw failed('error without a code');
  if (result === undefined) throw failed('the answer has no result');
  return result;
}
