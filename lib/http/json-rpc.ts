import { jsonIn } from '../json/value.ts';
import { type HttpClient, RequestFailure, type RequestFailureKind } from './client/index.ts';
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
    try {
      const answer = await client.request({ ...limits, method: 'POST', url, headers, body, maxBytes });
      if (answer.status !== 200) throw new JsonRpcFailure(`HTTP status ${answer.status}`);
      return resultOf(answer.body, id);
    } catch (error) {
      if (error instanceof JsonRpcFailure) throw new JsonRpcFailure(`${method}: ${error.message}`, error.code);
      if (!(error instanceof RequestFailure)) throw error;
      const { kind, message } = error;
      throw new JsonRpcFailure(`${method}: ${kind}: ${message}`, undefined, kind);
    }
  };
}

function resultOf(body: Buffer, asked: number): unknown {
  const answer = jsonIn(body.toString());
  if (answer === undefined) throw new JsonRpcFailure('the answer is no JSON');
  if (typeof answer !== 'object' || answer === null) throw new JsonRpcFailure('the answer is no object');
  const { jsonrpc, id, error, result }: Readonly<Record<string, unknown>> = { ...answer };
  if (jsonrpc !== '2.0') throw new JsonRpcFailure('the answer is not JSON-RPC 2.0');
  if (id !== asked) throw new JsonRpcFailure('the answer belongs to another question');
  // Some nodes send `"error": null` beside a result.
  if (error !== undefined && error !== null) throw failureOf(error);
  if (result === undefined) throw new JsonRpcFailure('the answer has no result');
  return result;
}

/** Leaves out the error's message, which may quote a key from the URL. */
function failureOf(error: unknown): JsonRpcFailure {
  const { code }: { readonly code?: unknown } = Object(error);
  return typeof code === 'number'
    ? new JsonRpcFailure(`error ${code}`, code)
    : new JsonRpcFailure('error without a code');
}
