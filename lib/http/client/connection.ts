import { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { buildConnector, Client } from 'undici';
import { undici } from '../../process/lazy.ts';
import type { HostNames } from '../host-names/index.ts';
import type { ClientTls } from './client-tls.ts';
import type { HttpProxy } from './proxies.ts';
import type { RequestPhase } from './request.ts';
import { openTunnel, unreachable } from './tunnel.ts';

/** What connections are made with: the same for all of a client. */
export interface Means {
  readonly names: HostNames;
  readonly connector: buildConnector.connector;
  /** To a proxy. */
  readonly proxyConnector: buildConnector.connector;
}

export function meansWith(names: HostNames, tls?: ClientTls): Means {
  // No connect timeout: a call destroys its socket at its own deadline, also one that is still connecting.
  const options = { timeout: 0, lookup: names.lookup };
  const proxyConnector = undici().buildConnector(options);
  const connector = tls === undefined ? proxyConnector : undici().buildConnector({ ...options, ...tls });
  return { names, connector, proxyConnector };
}

/** One keep-alive socket at a time, and the undici client that speaks HTTP on it. */
export class Connection {
  readonly client: Client;
  /** What is under way before a request can be sent; undefined when nothing is. */
  phase: Exclude<RequestPhase, 'answer'> | undefined;
  readonly #proxy: HttpProxy | undefined;
  #leave: (() => void) | undefined;
  #waitsFor: 'name' | 'tunnel' | undefined;
  #socket: Socket | undefined;
  /** When the last exchange on the present socket was complete, and how many bytes had come by then. */
  #restingSince: number | undefined;
  #bytesAtRest = 0;

  /** @param proxy what it leads through; undefined: it leads to the origin itself. */
  constructor(origin: string, means: Means, keepAliveTimeout: number, proxy?: HttpProxy) {
    this.#proxy = proxy;
    this.client = new (undici().Client)(origin, {
      connect: (options, callback) => {
        this.#restingSince = undefined;
        this.#waitsFor = 'name';
        this.phase = 'dns';
        const host = proxy === undefined ? options.hostname : proxy.url.hostname.replace(/^\[|\]$/g, '');
        this.#leave = means.names.find(host, (error) => {
          this.#waitsFor = undefined;
          if (proxy !== undefined || !error) this.phase = 'connect';
          if (error) return queueMicrotask(() => callback(proxy === undefined ? error : unreachable(error), null));
          try {
            if (proxy === undefined) this.#connect(means.connector, options, callback);
            else this.#connectThrough(proxy, host, means, options, callback);
          } catch (failure) {
            callback(failure instanceof Error ? failure : new Error(String(failure)), null);
          }
        });
      },
      allowH2: false,
      // The call's deadline covers both.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout,
    });
  }

  /** What a call that ends now has waited for in vain. */
  get lack(): string {
    if (this.#waitsFor === 'tunnel') return 'no connection through the proxy';
    if (this.#waitsFor === undefined) return 'no complete answer';
    return `no address for the host name${this.#proxy === undefined ? '' : ' of the proxy'}`;
  }

  get usable(): boolean {
    return this.#socket !== undefined && !this.#socket.destroyed;
  }

  /** Called when an exchange is complete. */
  rest(): void {
    this.#restingSince = performance.now();
    this.#bytesAtRest = this.#bytesRead;
  }

  /** Milliseconds since the last exchange, if nothing has come from the server since; undefined on a new socket, too. */
  get idleFor(): number | undefined {
    if (this.#restingSince === undefined || this.#bytesRead !== this.#bytesAtRest) return undefined;
    return performance.now() - this.#restingSince;
  }

  /** What broke the socket, other than undici closing it in order. */
  get fault(): Error | undefined {
    const error = this.#socket?.errored;
    return error && !(error instanceof undici().errors.InformationalError) ? error : undefined;
  }

  /** Resolves when the socket is closed. */
  async destroy(): Promise<void> {
    this.#leave?.();
    const closed = this.client.destroy();
    // undici leaves a connecting socket alone; with an error it tells the connector, which then lets go.
    if (this.usable) this.#socket?.destroy(new (undici().errors.InformationalError)('abandoned'));
    await closed;
  }

  #connect(
    connector: buildConnector.connector,
    options: buildConnector.Options,
    callback: buildConnector.Callback,
  ): void {
    // Typed as void, but it is the socket, and the only way to reach one that is still connecting.
    const socket: unknown = connector(options, (...result) => {
      if (result[0] === null) this.phase = undefined;
      callback(...result);
    });
    this.#socket = socket instanceof Socket ? socket : undefined;
    if (!(socket instanceof TLSSocket)) return;
    if (options.httpSocket) this.phase = 'tls';
    else
      socket.once('connect', () => {
        this.phase = 'tls';
      });
  }

  /** To the proxy, and for https through a tunnel: a proxy that is asked for an http URL sends the request on itself. */
  #connectThrough(
    proxy: HttpProxy,
    hostname: string,
    { connector, proxyConnector }: Means,
    options: buildConnector.Options,
    callback: buildConnector.Callback,
  ): void {
    this.#waitsFor = 'tunnel';
    const give: typeof callback = (...result) => {
      this.#waitsFor = undefined;
      callback(...result);
    };
    const { host, protocol, port } = proxy.url;
    this.#connect(proxyConnector, { hostname, host, protocol, port }, (error, socket) => {
      if (error) return give(unreachable(error), null);
      if (options.protocol !== 'https:') return give(null, socket);
      const authority = options.port ? (options.host ?? '') : `${options.host}:443`;
      openTunnel(socket, authority, proxy, (failure) => {
        if (failure) give(failure, null);
        else this.#connect(connector, { ...options, httpSocket: socket }, give);
      });
    });
  }

  /** Bytes of HTTP that the present socket has received so far. */
  get #bytesRead(): number {
    return this.#socket?.bytesRead ?? 0;
  }
}
