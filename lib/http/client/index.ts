import { type HttpClient, type HttpClientOptions, PooledClient } from './client.ts';

export { type BoundedRequest, type BoundedResponse, RequestFailure, type RequestFailureKind } from './request.ts';
export type { HttpClient, HttpClientOptions };

/** Makes a client. Whoever makes it closes it: a plugin in its `stop`. */
export function createHttpClient(options: HttpClientOptions = {}): HttpClient {
  return new PooledClient(options);
}
