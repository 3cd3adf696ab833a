import { createHttpClient } from '../../lib/http/client/index.ts';
import { createJsonRpc } from '../../lib/http/json-rpc.ts';
import { httpTarget } from '../../lib/http/target.ts';

/** Milliseconds for one call. */
const CALL_TIMEOUT_MS = 10_000;

/** Bytes of an answer: a few addresses are all that is asked for. */
const LARGEST = 256 * 1024;

/**
 * A node of the host chain, with the part of EIP-1193 that the SDK uses.
 *
 * @param url may hold a user name and a password; they are sent as a header, and no error shows them or the path.
 * @returns `failed` rejects with the first failure. The library that the SDK puts between itself and a node would try again once
 * a second, without end and without saying why.
 */
export function connectRpc(url: string) {
  const client = createHttpClient({ connections: 2 });
  const rpc = createJsonRpc(client, httpTarget(url), LARGEST);
  const { signal } = new AbortController();
  let fail: (error: unknown) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  // Once there is a connection nobody reads this failure.
  failed.catch(() => undefined);
  return {
    failed,
    close: () => client.close(),
    request: async ({ method, params = [] }: { readonly method: string; readonly params?: object }) => {
      try {
        return await rpc(method, params, { timeout: CALL_TIMEOUT_MS, signal });
      } catch (error) {
        const failure = new Error(`settings.fhe.rpcUrl, ${error instanceof Error ? error.message : String(error)}`);
        fail(failure);
        throw failure;
      }
    },
  };
}
