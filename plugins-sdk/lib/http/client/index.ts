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

/**
 * An HTTP/1.1 client with keep-alive sockets of its own. It goes through the proxies that `HTTP_PROXY`, `HTTPS_PROXY` and
 * `NO_PROXY` name when it is made: an https URL through a tunnel, an http URL by asking the proxy for it.
 */
export interface HttpClient {
  /**
   * Sends one request and reads the whole answer.
   *
   * A request of which nothing was sent, because its connection ended first, is sent again on a new one, twice at most.
   * So is a GET, HEAD or OPTIONS when the server closes a reused connection before the first byte of the answer: that is
   * a keep-alive connection that ended meanwhile, not an answer (RFC 9110, section 9.2.2). Other requests are never
   * repeated once they may have been sent; they go out on connections only that the server can be expected to keep.
   *
   * A body whose end is the end of the connection (no length, not chunked: HTTP/1.0) is accepted when the connection
   * was closed in order, because nothing tells a cut there.
   * @throws {RequestFailure}
   */
  request(request: BoundedRequest): Promise<BoundedResponse>;
  /** Loads what the first request would load before it is sent: with `warmUp` it finds it loaded. */
  load(): void;
  /** Ends calls under way as `aborted`, closes every socket, and refuses calls from then on. */
  close(): Promise<void>;
}

/** Makes a client. Whoever makes it closes it: a plugin in its `stop`. */
export function createHttpClient(options: HttpClientOptions = {}): HttpClient {
  return new PooledClient(options);
}
