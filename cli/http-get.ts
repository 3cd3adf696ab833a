import { type BoundedRequest, createHttpClient } from '../lib/http/client/index.ts';

/** Milliseconds that a whole answer may take. */
export const ANSWER_TIMEOUT_MS = 5000;

/** Sends one GET request. @param maxBytes the most bytes of the answer. @throws RequestFailure */
export async function httpGet(url: string, maxBytes: number, more: Partial<BoundedRequest> = {}) {
  const client = createHttpClient();
  try {
    return await client.request({ method: 'GET', url, timeout: ANSWER_TIMEOUT_MS, maxBytes, ...more });
  } finally {
    await client.close();
  }
}
