import { createHttpClient } from '../lib/http/client/index.ts';

/** Milliseconds for a whole answer. */
export const ANSWER_TIMEOUT_MS = 5000;

/** Asks a URL once. @param maxBytes of its answer. @throws RequestFailure */
export async function httpGet(
  url: string,
  maxBytes: number,
): Promise<{ readonly status: number; readonly text: string }> {
  const client = createHttpClient();
  try {
    const { status, body } = await client.request({ method: 'GET', url, timeout: ANSWER_TIMEOUT_MS, maxBytes });
    return { status, text: body.toString() };
  } finally {
    await client.close();
  }
}
