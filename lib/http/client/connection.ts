import { isIP, Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { buildConnector, Client } from 'undici';
import { undici } from '../../process/lazy.ts';
import { faultText, ProxyFailure } from './faults.ts';
import { lookUp } from './names.ts';
import type { HttpProxy } from './proxies.ts';
import type { RequestPhase } from './request.ts';
import { openTunnel } from './tunnel.ts';

/** What servers are shown and believed, as PEM texts. */
export interface ClientTls {
  /** The certificate that the client shows, and those that lead to its authority. */
  readonly cert?: string | undefined;
  /** The private key of that certificate. */
  readonly key?: string | undefined;
  /** The authorities that servers' certificates must be of, in place of those of Node.js. */
  readonly ca?: string | undefined;
}

/** What connections are made with: the same for all of a client. */
export interface Connectors {
  readonly toServer: buildConnector.connector;
  readonly toProxy: buildConnector.connector;
}

export function connectorsWith(tls?: ClientTls): Connectors {
  // No connect timeout: a call destroys its socket at its own deadline, also one that is still connecting.
  const options = { timeout: 0, lookup: lookUp };
  const { buildConnector } = undici();
  return { toServer: buildConnector({ ...options, ...tls }), toProxy: buildConnector(options) };
}

/** One keep-alive socket at a time, and the undici client that speaks HTTP on it. */
export class Connection {
  readonly client: Client;
  /** What is under way before a request can be sent; undefined when nothing is. */
  phase: Exclude<RequestPhase, 'answer'> | undefined;
  readonly #proxy: HttpProxy | undefined;
  readonly #connectors: Connectors;
  #socket: Socket | undefined;
  /** When the last exchange on the present socket was complete, and how many bytes had come by then. */
  #restingSince: number | undefined;
  #bytesAtRest = 0;

  /** @param proxy what it leads through; undefined: it leads to the origin itself. */
  constructor(origin: string, connectors: Connectors, keepAliveTimeout: number, proxy?: HttpProxy) {
    this.#proxy = proxy;
    this.#connectors = connectors;
    this.client = new (undici().Client)(origin, {
      connect: (options, callback) => {
        this.#restingSince = undefined;
        const connected =
          proxy === undefined ? this.#connect(connectors.toServer, options) : this.#connectThrough(proxy, options);
        connected.then(
          (socket) => {
            this.phase = undefined;
            callback(null, socket);
          },
          (error) => callback(error, null),
        );
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
    if (this.phase === 'dns') return `no address for the host name${this.#proxy === undefined ? '' : ' of the proxy'}`;
    if (this.phase !== undefined && this.#proxy !== undefined) return 'no connection through the proxy';
    return 'no complete answer';
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
    const closed = this.client.destroy();
    // undici leaves a connecting socket alone; with an error it tells the connector, which then lets go.
    if (this.usable) this.#socket?.destroy(new (undici().errors.InformationalError)('abandoned'));
    await closed;
  }

  #connect(connector: buildConnector.connector, options: buildConnector.Options): Promise<Socket> {
    return new Promise((resolve, reject) => {
      // Typed as void, but it is the socket, and the only way to reach one that is still connecting.
      const socket: unknown = connector(options, (error, connected) => {
        if (error === null) resolve(connected);
        else reject(error);
      });
      if (!(socket instanceof Socket)) return;
      this.#socket = socket;
      if (options.httpSocket) {
        this.phase = 'tls';
        return;
      }
      this.phase = isIP(options.hostname) === 0 ? 'dns' : 'connect';
      socket.once('lookup', (error) => {
        if (!error) this.phase = 'connect';
      });
      if (socket instanceof TLSSocket)
        socket.once('connect', () => {
          this.phase = 'tls';
        });
    });
  }

  /** To the proxy, and for https through a tunnel: a proxy that is asked for an http URL sends the request on itself. */
  async #connectThrough(proxy: HttpProxy, options: buildConnector.Options): Promise<Socket> {
    const { host, protocol, port } = proxy.url;
    const hostname = proxy.url.hostname.replace(/^\[|\]$/g, '');
    const socket = await this.#connect(this.#connectors.toProxy, { hostname, host, protocol, port }).catch((error) => {
      this.phase = 'connect';
      throw new ProxyFailure(`the proxy cannot be reached: ${faultText(error)}`);
    });
    this.phase = 'connect';
    if (options.protocol !== 'https:') return socket;
    const authority = options.port ? (options.host ?? '') : `${options.host}:443`;
    await openTunnel(socket, authority, proxy);
    return this.#connect(this.#connectors.toServer, { ...options, httpSocket: socket });
  }

  /** Bytes of HTTP that the present socket has received so far. */
  get #bytesRead(): number {
    return this.#socket?.bytesRead ?? 0;
  }
}
