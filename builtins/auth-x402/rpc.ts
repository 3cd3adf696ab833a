import { type HttpClient, RequestFailure } from '../../plugins-sdk/index.ts';

/** The node gave no usable answer. The message is fit for the log: it shows neither the path of a URL nor a text of the node's. */
export class RpcFailure extends Error {
  override readonly name = 'RpcFailure';
}

/** What one question may cost. */
export interface Limits {
  /** Milliseconds, everything included. */
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/** A node that is asked one question at a time, over JSON-RPC 2.0. */
export interface Rpc {
  /**
   * @returns the `result`, whatever its shape.
   * @throws RpcFailure
   */
  ask(method: string, params: readonly unknown[], limits: Limits): Promise<unknown>;
}

/** Bytes of an answer: a receipt of some thousand events, or a block of some ten thousand transactions by their hashes. */
const LARGEST_ANSWER = 1024 * 1024;

/** @param url `http:` or `https:`; a user name and password in it are sent as basic authentication (RFC 7617). */
export function createRpc(client: HttpClient, url: string): Rpc {
  const { target, headers } = addressed(url);
  let lastId = 0;
  return {
    async ask(method, params, { timeout, signal }) {
      lastId += 1;
      const id = lastId;
      const body = JSON.stringify({ jsonrpc: '2.0', id, method, params });
      try {
        const answer = await client.request({
          method: 'POST',
          url: target,
          headers,
          body,
          timeout,
          maxBytes: LARGEST_ANSWER,
          signal,
        });
        if (answer.status !== 200) throw new RpcFailure(`HTTP status ${answer.status}`);
        return resultOf(answer.body, id);
      } catch (error) {
        if (error instanceof RpcFailure) throw new RpcFailure(`${method}: ${error.message}`);
        if (error instanceof RequestFailure) throw new RpcFailure(`${method}: ${error.kind}: ${error.message}`);
        throw error;
      }
    },
  };
}

function addressed(url: string): { target: URL; headers: Record<string, string> } {
  const target = new URL(url);
  const headers: Record<string, string> = { 'content-type': 'application/json', accept: 'application/json' };
  if (target.username !== '' || target.password !== '') {
    const credentials = `${decodeURIComponent(target.username)}:${decodeURIComponent(target.password)}`;
    headers.authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
    target.username = '';
    target.password = '';
  }
  return { target, headers };
}

function resultOf(body: Buffer, id: number): unknown {
  let answer: unknown;
  try {
    answer = JSON.parse(body.toString('utf8'));
  } catch {
    throw new RpcFailure('the answer is no JSON');
  }
  if (typeof answer !== 'object' || answer === null) throw new RpcFailure('the answer is no object');
  const members = new Map<string, unknown>(Object.entries(answer));
  if (members.get('jsonrpc') !== '2.0') throw new RpcFailure('the answer is not JSON-RPC 2.0');
  if (members.get('id') !== id) throw new RpcFailure('the answer belongs to another question');
  // Some nodes send `"error": null` beside a result.
  const error = members.get('error') ?? undefined;
  if (error !== undefined) throw new RpcFailure(`error ${codeOf(error)}`);
  if (!members.has('result')) throw new RpcFailure('the answer has no result');
  return members.get('result');
}

/** The text of an error may quote a key out of the URL. */
function codeOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'number' ? String(code) : 'without a code';
}
