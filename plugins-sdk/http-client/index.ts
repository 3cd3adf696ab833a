import { PooledClient } from './client.ts';
import type { BoundedRequest, BoundedResponse } from './request.ts';

export { type BoundedRequest, type BoundedResponse, RequestFailure, type RequestFailureKind } from './request.ts';

/** Limits of an {@link HttpClient}. */
export interface HttpClientOptions {
  /** Most sockets per origin; further requests wait for one, within their own timeout. Default 128. */
  readonly connections?: number | undefined;
  /** Milliseconds that an idle socket is kept when the server names no time of its own. Default 4000. */
  readonly keepAliveTimeout?: number | undefined;
}

/** An HTTP/1.1 client with keep-alive sockets of its own. */
export interface HttpClient {
  /**
   * Sends one request and reads the whole answer.
   *
   * A GET, HEAD or OPTIONS is sent once more, on a new connection, when the server closes a reused socket before the
   * first byte of the answer: that is a keep-alive socket that ended on its way, not an answer (RFC 9110, section
   * 9.2.2). Other methods are never repeated.
   *
   * A body whose end is the end of the connection (no length, not chunked: HTTP/1.0) is accepted when the connection
   * was closed in order, because nothing tells a cut there.
   * @throws {RequestFailure}
   */
  request(request: BoundedRequest): Promise<BoundedResponse>;
  /** Ends calls under way as `aborted`, closes every socket, and refuses calls from then on. */
  close(): Promise<void>;
}

/** Makes a client. Whoever makes it closes it: a plugin in its `stop`. */
export function createHttpClient(options: HttpClientOptions = {}): HttpClient {
  return new PooledClient(options);
}
