import { createHttpClient, type HttpClient, RequestFailure } from '../../plugins-sdk/lib/http/client/index.ts';

/** The part of EIP-1193 that the SDK uses. */
export interface Eip1193Provider {
  request(call: { readonly method: string; readonly params?: unknown }): Promise<unknown>;
}

/** A node of the host chain, over JSON-RPC. */
export interface Rpc extends Eip1193Provider {
  /**
   * Rejects with the first failure. The library that the SDK puts between itself and a node would try again once a second,
   * without end and without saying why.
   */
  readonly failed: Promise<never>;
  close(): Promise<void>;
}

/** Milliseconds for one call. */
const CALL_TIMEOUT_MS = 10_000;

/** Bytes of an answer: a few addresses are all that is asked for. */
const LARGEST = 256 * 1024;

/** @param url may hold a user name and a password; they are sent as a header, and no error shows them or the path. */
export function connectRpc(url: string): Rpc {
  const client = createHttpClient({ connections: 2 });
  const { target, headers } = targetOf(url);
  let fail: (error: unknown) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  // Once there is a connection nobody reads this failure.
  failed.catch(() => undefined);
  let id = 0;
  return {
    failed,
    close: () => client.close(),
    request: async ({ method, params = [] }) => {
      id += 1;
      try {
        return resultOf(
          id,
          await post(client, target, headers, JSON.stringify({ jsonrpc: '2.0', id, method, params })),
        );
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        const failure = new Error(`settings.fhe.rpcUrl, ${method}: ${why}`);
        fail(failure);
        throw failure;
      }
    },
  };
}

function targetOf(text: string): { target: string; headers: Readonly<Record<string, string>> } {
  const url = new URL(text);
  const { username, password } = url;
  url.username = '';
  url.password = '';
  const plain = { 'content-type': 'application/json', accept: 'application/json' };
  if (username === '' && password === '') return { target: url.href, headers: plain };
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return {
    target: url.href,
    headers: { ...plain, authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
  };
}

async function post(
  client: HttpClient,
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string,
): Promise<Buffer> {
  try {
    const answer = await client.request({
      method: 'POST',
      url,
      headers,
      body,
      timeout: CALL_TIMEOUT_MS,
      maxBytes: LARGEST,
    });
    if (answer.status !== 200) throw new Error(`status ${answer.status}`);
    return answer.body;
  } catch (error) {
    throw error instanceof RequestFailure ? new Error(`${error.kind}: ${error.message}`) : error;
  }
}

function resultOf(id: number, body: Buffer): unknown {
  let answer: unknown;
  try {
    answer = JSON.parse(body.toString());
  } catch {
    throw new Error('the answer is no JSON');
  }
  if (typeof answer !== 'object' || answer === null) throw new Error('the answer is no object');
  if (!('id' in answer) || answer.id !== id) throw new Error('the answer has another id than the call');
  if ('error' in answer && answer.error !== null) throw new Error('the answer is an error');
  if (!('result' in answer)) throw new Error('the answer has no result');
  return answer.result;
}
