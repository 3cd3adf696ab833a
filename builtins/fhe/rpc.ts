import { createHttpClient } from '../../lib/http/client/index.ts';
import { createJsonRpc } from '../../lib/http/json-rpc.ts';
import { httpTarget } from '../../lib/http/target.ts';
import { errorText } from '../../lib/text.ts';
import { deferred } from '../../lib/time.ts';

/** Timeout of one call, in milliseconds. */
const CALL_TIMEOUT_MS = 10_000;

/** Most bytes of an answer, which is a few addresses at most. */
const LARGEST = 256 * 1024;

/**
 * Connects to a node of the host chain, with the part of EIP-1193 that the SDK uses.
 *
 * @param url may contain a user name and a password, which are sent as a header. No error shows them or the path.
 * @returns `failed` rejects with the first failure; the library between the SDK and the node would try again once a second,
 * without end or reason.
 */
export function connectRpc(url: string) {
  const client = createHttpClient({ connections: 2 });
  const rpc = createJsonRpc(client, httpTarget(url), LARGEST);
  const { signal } = new AbortController();
  const failed = deferred<never>();
  // Marked as handled: after the connection nothing reads this failure.
  failed.promise.catch(() => undefined);
  return {
    failed: failed.promise,
    close: () => client.close(),
    request: async ({ method, params = [] }: { readonly method: string; readonly params?: object }) => {
      try {
        return await rpc(method, params, { timeout: CALL_TIMEOUT_MS, signal });
      } catch (error) {
        const failure = new Error(`settings.fhe.rpcUrl, ${errorText(error)}`);
        failed.resolve(Promise.reject(failure));
        throw failure;
      }
    },
  };
}
