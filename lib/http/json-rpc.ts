import { jsonIn } from '../json/value.ts';
import { type HttpClient, RequestFailure, type RequestFailureKind } from './client/index.ts';
import type { HttpTarget } from './target.ts';

/** The node gave no usable answer. The message is fit for the log: it shows neither the path of a URL nor a text of the node's. */
export class JsonRpcFailure extends Error {
  override readonly name = 'JsonRpcFailure';
  /** The code of the error object, where the node sent one. */
  readonly code: number | undefined;
  /** How the request failed, where no answer could be taken. */
  readonly kind: RequestFailureKind | undefined;

  constructor(message: string, code?: number, kind?: RequestFailureKind) {
    super(message);
    this.code = code;
    this.kind = kind;
  }
}

/** What one question may cost. */
export interface JsonRpcLimits {
  /** Milliseconds, everything included. */
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/**
 * Asks a node one question, over JSON-RPC 2.0.
 * @param params a list, or an object of names.
 * @returns the `result`, whatever its shape.
 * @throws JsonRpcFailure naming the method.
 */
export type JsonRpc = (method: string, params: object, limits: JsonRpcLimits) => Promise<unknown>;

/** Bytes of an answer: a receipt of some thousand events, or a block of some ten thousand transactions by their hashes. */
const LARGEST_ANSWER = 1024 * 1024;

/** @param maxBytes largest acceptable answer. Default 1 MiB. */
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

/** The text of an error may quote a key out of the URL. */
function failureOf(error: unknown): JsonRpcFailure {
  const { code }: { readonly code?: unknown } = Object(error);
  return typeof code === 'number'
    ? new JsonRpcFailure(`error ${code}`, code)
    : new JsonRpcFailure('error without a code');
}
