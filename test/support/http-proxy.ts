import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TestContext } from 'node:test';

/** What a proxy does instead of its work, with a request to be forwarded or with a CONNECT. */
export interface Misbehaviour {
  readonly onConnect?: (socket: Duplex) => void;
  readonly onRequest?: (response: ServerResponse) => void;
  /** PEM, for a proxy that speaks TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** A real proxy on loopback, which leads whatever it is asked for to one port of this machine. */
export class HttpProxy {
  /** `http://127.0.0.1:<port>` */
  url = '';
  port = 0;
  /** The request lines that it got, without the version. */
  readonly asked: string[] = [];
  /** The header `Proxy-Authorization` of each. */
  readonly credentials: (string | undefined)[] = [];
  /** The others of each. */
  readonly headers: IncomingMessage['headers'][] = [];
  /** Tunnels and connections that are open. */
  readonly sockets = new Set<Duplex>();
  readonly #leadsTo: number;
  readonly #instead: Misbehaviour;

  constructor(leadsTo: number, instead: Misbehaviour) {
    this.#leadsTo = leadsTo;
    this.#instead = instead;
  }

  async listen(t: TestContext): Promise<this> {
    const { tls } = this.#instead;
    const server = tls === undefined ? createServer() : createTlsServer(tls);
    server.on(tls === undefined ? 'connection' : 'secureConnection', (socket) => this.#keep(socket));
    server.on('request', (incoming, response) => this.#answer(incoming, response));
    server.on('connect', (incoming: IncomingMessage, client: Socket) => this.#tunnel(incoming, client));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => {
      for (const socket of this.sockets) socket.destroy();
      server.close();
    });
    this.port = (server.address() as AddressInfo).port;
    this.url = `http${tls === undefined ? '' : 's'}://127.0.0.1:${this.port}`;
    return this;
  }

  #note({ method, url, headers: { 'proxy-authorization': credential, ...others } }: IncomingMessage): void {
    this.asked.push(`${method} ${url}`);
    this.credentials.push(credential);
    this.headers.push(others);
  }

  #keep(socket: Duplex): void {
    this.sockets.add(socket);
    socket.on('close', () => this.sockets.delete(socket)).on('error', () => undefined);
  }

  #answer(incoming: IncomingMessage, response: ServerResponse): void {
    this.#note(incoming);
    const { onRequest } = this.#instead;
    if (onRequest === undefined) this.#forward(incoming, response);
    else onRequest(response);
  }

  #forward(incoming: IncomingMessage, response: ServerResponse): void {
    const { method, url = '' } = incoming;
    const { 'proxy-authorization': _, ...headers } = incoming.headers;
    const path = url.replace(/^http:\/\/[^/]*/, '');
    const forwarded = request({ port: this.#leadsTo, host: '127.0.0.1', method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(forwarded);
  }

  #tunnel(incoming: IncomingMessage, client: Socket): void {
    this.#note(incoming);
    const { onConnect } = this.#instead;
    // Who reads nothing does not hear that the client has gone.
    if (onConnect === undefined) this.#join(client);
    else onConnect(client.on('end', () => client.destroy()).resume());
  }

  #join(client: Socket): void {
    const target = connect(this.#leadsTo, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      client.pipe(target).pipe(client);
    });
    this.#keep(target);
    client.on('close', () => target.destroy());
  }
}

/** @param leadsTo the port of the one server that there is. */
export function startHttpProxy(t: TestContext, leadsTo: number, instead: Misbehaviour = {}): Promise<HttpProxy> {
  return new HttpProxy(leadsTo, instead).listen(t);
}
