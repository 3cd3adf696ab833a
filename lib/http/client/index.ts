import { undici } from '../../process/lazy.ts';
import { type ClientTls, connectorThrough } from './connect.ts';
import { CALLER_ABORTED, PendingRequest } from './pending-request.ts';
import { CLIENT_CLOSED, Connection, Pool } from './pool.ts';
import { proxiesInForce } from './proxies.ts';
import { type BoundedRequest, type BoundedResponse, failure, parseTarget, RequestFailure } from './request.ts';

export { type BoundedRequest, type BoundedResponse, RequestFailure, type RequestFailureKind } from './request.ts';

const DEFAULT_CONNECTIONS = 128;
/** Origins that are remembered without a call under way. */
const MOST_POOLS = 1000;

/** Limits of an {@link HttpClient}. */
export interface HttpClientOptions {
  /** Most sockets per origin; further requests wait for one, within their own timeout. Default 128. */
  readonly connections?: number | undefined;
  /** What servers are shown and believed, over https; proxies are not. */
  readonly tls?: ClientTls | undefined;
}

/**
 * An HTTP/1.1 client with keep-alive sockets of its own. It goes through the proxies that `HTTP_PROXY`, `HTTPS_PROXY` and
 * `NO_PROXY` name when it is made. It reaches an https URL through a tunnel, an http URL by asking the proxy for it.
 */
export interface HttpClient {
  /**
   * Sends one request and reads the whole answer.
   *
   * A request of which nothing was sent, because its connection ended first, is sent again on a new one, twice at most.
   * So is, once, a GET, HEAD or OPTIONS when the server closes the connection before the answer (RFC 9110, section
   * 9.2.2). Other requests are never repeated once they may have been sent: they use no connection that has been idle.
   *
   * A body whose end is the end of the connection (no length, not chunked: HTTP/1.0) is accepted when the connection
   * was closed in order. Nothing tells a cut there.
   * @throws {RequestFailure}
   */
  request(request: BoundedRequest): Promise<BoundedResponse>;
  /** Ends calls that wait for a server as `aborted`, closes every socket, and refuses calls from then on. */
  close(): Promise<void>;
}

/** Makes an HTTP client. Its maker closes it: a plugin in its `stop`. */
export function createHttpClient(options: HttpClientOptions = {}): HttpClient {
  return new PooledClient(options);
}

class PooledClient implements HttpClient {
  readonly #options: HttpClientOptions;
  readonly #proxies = proxiesInForce();
  readonly #pools = new Map<string, Pool>();
  #closed = false;

  constructor(options: HttpClientOptions) {
    const { connections = DEFAULT_CONNECTIONS } = options;
    if (!Number.isSafeInteger(connections) || connections < 1)
      throw new RangeError('connections must be a positive integer');
    this.#options = options;
  }

  request(request: BoundedRequest): Promise<BoundedResponse> {
    return new Promise((resolve, reject) => {
      // Loaded before the clock of the call begins.
      undici();
      const url = parseTarget(request);
      const ended = this.#closed ? CLIENT_CLOSED : request.signal?.aborted && CALLER_ABORTED;
      if (ended) throw failure('aborted', `${request.method} ${url.origin}`, ended);
      new PendingRequest(request, url, this.#poolOf(url), (outcome) => {
        if (outcome instanceof RequestFailure) reject(outcome);
        else resolve(outcome);
      }).start();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(Array.from(this.#pools.values(), (pool) => pool.close()));
  }

  #poolOf(url: URL): Pool {
    const { origin, protocol } = url;
    const known = this.#pools.get(origin);
    if (known) return known;
    if (this.#pools.size >= MOST_POOLS)
      for (const [other, pool] of this.#pools) if (pool.isUnused && this.#pools.delete(other)) void pool.close();
    const { connections = DEFAULT_CONNECTIONS, tls } = this.#options;
    const proxy = this.#proxies.of(url);
    const connect = connectorThrough(proxy, tls);
    const pool = new Pool(connections, () => new Connection(origin, connect), protocol === 'http:' ? proxy : undefined);
    this.#pools.set(origin, pool);
    return pool;
  }
}
