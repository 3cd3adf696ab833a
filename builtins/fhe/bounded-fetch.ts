/** Most bytes of one answer, after decompression. The largest real one, the reference string for 2048 bits, has 5 MB. */
const LARGEST = 32 * 1024 * 1024;

/**
 * Makes a `fetch` that ends an answer which is too large: the SDK reads answers of any length into memory. It follows no
 * redirect, because the API key would go with it.
 */
export function boundedFetch(fetch: typeof globalThis.fetch, largest = LARGEST): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, { ...init, redirect: 'error' });
    if (response.body === null) return response;
    let size = 0;
    const counting = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        size += chunk.byteLength;
        if (size > largest) controller.error(new Error(`the answer has more than ${largest} bytes`));
        else controller.enqueue(chunk);
      },
    });
    const { status, statusText, headers, url } = response;
    const bounded = new Response(response.body.pipeThrough(counting), { status, statusText, headers });
    // The SDK's errors name the URL.
    return Object.defineProperty(bounded, 'url', { value: url });
  };
}
