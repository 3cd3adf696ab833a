import { undiciClient } from '../../process/packages.ts';
import { urlIn } from '../target.ts';
import { type ClientTls, connectorThrough } from './connect.ts';
import { PendingRequest } from './pending-request.ts';
import { CLIENT_CLOSED, Connection, Pool } from './pool.ts';
import { proxiesInForce } from './proxies.ts';
import { type BoundedRequest, type BoundedResponse, RequestFailure } from './request.ts';

export { type BoundedRequest, type BoundedResponse, RequestFailure, type RequestFailureKind } from './request.ts';

const DEFAULT_CONNECTIONS = 128;
/** At this number of origins, the connections to those without a call under way are closed. */
const MOST_POOLS = 1000;

/** Limits of an {@link HttpClient}. */
export interface HttpClientOptions {
  /** Most sockets per origin; further requests wait for one, within their own timeout. Default 128. */
  readonly connections?: number | undefined;
  /** TLS settings for https servers. They do not apply to proxies. */
  readonly tls?: ClientTls | undefined;
}

/**
 * An HTTP/1.1 client with keep-alive sockets of its own. It uses the proxies that `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`
 * name when it is created. An https URL is reached through a tunnel; requests to an http URL are forwarded by the proxy.
 */
export interface HttpClient {
  /**
   * Sends one request and reads the whole answer.
   *
   * If the connection ends before anything was sent, the request is sent again on a new one, at most twice. If the server
   * closes a reused connection before the answer, a GET, HEAD or OPTIONS is repeated once (RFC 9110, section 9.2.2). Any
   * other request is never repeated once it may have been sent, and uses no connection that has been idle.
   *
   * A body that ends with the connection (no length, not chunked: HTTP/1.0) is accepted when the connection was closed
   * in order. A truncated one cannot be detected.
   * @throws {RequestFailure}
   */
  request(request: BoundedRequest): Promise<BoundedResponse>;
  /** Ends the calls under way as `aborted`, closes every socket, and refuses further calls. */
  close(): Promise<void>;
}

/** Returns the parsed URL of a request. @throws RequestFailure unless it is http(s) and without user name and password. */
function parseTarget({ method, url }: BoundedRequest): URL {
  const target = urlIn(url);
  if (target === undefined) throw new RequestFailure('network', `${method} failed: the URL is not valid`);
  if (target.protocol !== 'http:' && target.protocol !== 'https:')
    throw new RequestFailure('network', `${method} failed: the URL must start with http:// or https://`);
  if (target.username === '' && target.password === '') return target;
  const what = `${method} ${target.origin}`;
  throw new RequestFailure('network', `${what} failed: the URL must not contain a user name or password`);
}

/** Creates an HTTP client. Its creator must close it: a plugin does so in its `stop`. */
export function createHttpClient({ connections = DEFAULT_CONNECTIONS, tls }: HttpClientOptions = {}): HttpClient {
  if (!Number.isSafeInteger(connections) || connections < 1)
    throw new RangeError('connections must be a positive integer');
  const proxies = proxiesInForce();
  const pools = new Map<string, Pool>();
  let isClosed = false;
  const poolOf = (url: URL): Pool => {
    const { origin, protocol } = url;
    const known = pools.get(origin);
    if (known) return known;
    if (pools.size >= MOST_POOLS)
      for (const [other, pool] of pools) if (pool.isUnused && pools.delete(other)) void pool.close();
    // Loads undici before the timeout of the first call starts.
    undiciClient();
    const proxy = proxies.of(url);
    const connect = connectorThrough(proxy, tls);
    const pool = new Pool(connections, () => new Connection(origin, connect), protocol === 'http:' ? proxy : undefined);
    pools.set(origin, pool);
    return pool;
  };
  return {
    request: (request) =>
      new Promise((resolve, reject) => {
        const url = parseTarget(request);
        const call = new PendingRequest(request, url, poolOf(url), resolve, reject);
        if (isClosed) call.fail('aborted', CLIENT_CLOSED);
        else call.start();
      }),
    async close() {
      isClosed = true;
      await Promise.all(Array.from(pools.values(), (pool) => pool.close()));
    },
  };
}
