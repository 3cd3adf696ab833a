import { undici } from '../../process/lazy.ts';
import { borrowHostNames, returnHostNames } from '../host-names/index.ts';
import type { ClientTls } from './client-tls.ts';
import { Connection, type Means, meansWith } from './connection.ts';
import { CALLER_ABORTED, CLIENT_CLOSED, PendingRequest } from './pending-request.ts';
import { Pool } from './pool.ts';
import { type HttpProxy, proxiesInForce } from './proxies.ts';
import { type BoundedRequest, type BoundedResponse, failure, parseTarget, RequestFailure } from './request.ts';

const DEFAULT_CONNECTIONS = 128;
const DEFAULT_KEEP_ALIVE_MS = 4000;

/** Origins that are remembered without a connection, for what is known of them. */
const MOST_POOLS = 1000;

/** Limits of an {@link HttpClient}. */
export interface HttpClientOptions {
  /** Most sockets per origin; further requests wait for one, within their own timeout. Default 128. */
  readonly connections?: number | undefined;
  /** Milliseconds that an idle socket is kept when the server names no time of its own. Default 4000. */
  readonly keepAliveTimeout?: number | undefined;
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
   * So is a GET, HEAD or OPTIONS when the server closes a reused connection before the first byte of the answer. That is
   * a keep-alive connection that ended meanwhile, not an answer (RFC 9110, section 9.2.2). Other requests are never
   * repeated once they may have been sent; they go out on connections only that the server can be expected to keep.
   *
   * A body whose end is the end of the connection (no length, not chunked: HTTP/1.0) is accepted when the connection
   * was closed in order. Nothing tells a cut there.
   * @throws {RequestFailure}
   */
  request(request: BoundedRequest): Promise<BoundedResponse>;
  /** Loads what the first request would load before it is sent: with `warmUp` it finds it loaded. */
  load(): void;
  /** Ends calls under way as `aborted`, closes every socket, and refuses calls from then on. */
  close(): Promise<void>;
}

export class PooledClient implements HttpClient {
  readonly #limit: number;
  readonly #open: (origin: string, proxy: HttpProxy | undefined) => Connection;
  readonly #tls: ClientTls | undefined;
  readonly #proxies = proxiesInForce();
  readonly #pools = new Map<string, Pool>();
  readonly #calls = new Calls();
  #means: Means | undefined;
  #closed = false;

  constructor({ connections = DEFAULT_CONNECTIONS, keepAliveTimeout = DEFAULT_KEEP_ALIVE_MS, tls }: HttpClientOptions) {
    if (!Number.isSafeInteger(connections) || connections < 1) {
      throw new RangeError('connections must be a positive integer');
    }
    this.#limit = connections;
    this.#tls = tls;
    this.#open = (origin, proxy) => new Connection(origin, this.#reach(), keepAliveTimeout, proxy);
  }

  load(): void {
    undici();
  }

  request(request: BoundedRequest): Promise<BoundedResponse> {
    return new Promise((resolve, reject) => {
      // Before the clock of the call begins.
      this.load();
      const url = parseTarget(request);
      if (this.#closed) throw failure('aborted', request.method, url.origin, CLIENT_CLOSED);
      if (request.signal?.aborted) throw failure('aborted', request.method, url.origin, CALLER_ABORTED);
      const call = new PendingRequest(request, url, this.#poolOf(url), (outcome) => {
        this.#calls.delete(call);
        if (outcome instanceof RequestFailure) reject(outcome);
        else resolve(outcome);
      });
      this.#calls.add(call);
      call.start();
    });
  }

  async close(): Promise<void> {
    const isFirst = !this.#closed;
    this.#closed = true;
    const connections = [...this.#pools.values()].flatMap((pool) => [...pool.connections]);
    for (const call of this.#calls.all()) call.fail('aborted', CLIENT_CLOSED);
    if (isFirst && this.#means !== undefined) returnHostNames();
    await Promise.all(connections.map((connection) => connection.destroy()));
  }

  /** What connections are made with, from the first one on. */
  #reach(): Means {
    this.#means ??= meansWith(borrowHostNames(), this.#tls);
    return this.#means;
  }

  #poolOf(url: URL): Pool {
    const { origin, protocol } = url;
    const known = this.#pools.get(origin);
    if (known) return known;
    if (this.#pools.size >= MOST_POOLS) this.#forgetUnused();
    const proxy = this.#proxies.of(url);
    const pool = new Pool(this.#limit, () => this.#open(origin, proxy), protocol === 'http:' ? proxy : undefined);
    this.#pools.set(origin, pool);
    return pool;
  }

  #forgetUnused(): void {
    for (const [origin, { connections }] of this.#pools) if (connections.size === 0) this.#pools.delete(origin);
  }
}

/**
 * Calls under way, in no order. A `Set` of such turnover renews its table every few dozen calls, and each table points to the
 * next. One that V8 has moved to its old generation keeps all that came later, until that is old too.
 */
class Calls {
  readonly #calls: PendingRequest[] = [];

  all(): readonly PendingRequest[] {
    return [...this.#calls];
  }

  add(call: PendingRequest): void {
    call.place = this.#calls.length;
    this.#calls.push(call);
  }

  delete({ place }: PendingRequest): void {
    const last = this.#calls.pop();
    if (last === undefined || place === this.#calls.length) return;
    this.#calls[place] = last;
    last.place = place;
  }
}
