import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TestContext } from 'node:test';

/** A real proxy on loopback, which leads whatever it is asked for to one port of this machine. */
export interface HttpProxy {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  readonly port: number;
  /** The request lines that it got, without the version. */
  readonly asked: string[];
  /** The header `Proxy-Authorization` of each. */
  readonly credentials: (string | undefined)[];
  /** The others of each. */
  readonly headers: IncomingMessage['headers'][];
  /** Tunnels and connections that are open. */
  readonly sockets: Set<Duplex>;
}

/** What a proxy does instead of its work, with a request to be forwarded or with a CONNECT. */
export interface Misbehaviour {
  readonly onConnect?: (socket: Duplex) => void;
  readonly onRequest?: (response: ServerResponse) => void;
  /** PEM, for a proxy that speaks TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** @param leadsTo the port of the one server that there is. */
export async function startHttpProxy(t: TestContext, leadsTo: number, instead: Misbehaviour = {}): Promise<HttpProxy> {
  const [asked, credentials, headers, sockets]: [
    string[],
    (string | undefined)[],
    IncomingMessage['headers'][],
    Set<Duplex>,
  ] = [[], [], [], new Set()];
  const note = ({ method, url, headers: { 'proxy-authorization': credential, ...others } }: IncomingMessage) => {
    asked.push(`${method} ${url}`);
    credentials.push(credential);
    headers.push(others);
  };
  const keep = (socket: Duplex) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined);
  };
  const server = instead.tls === undefined ? createServer() : createTlsServer(instead.tls);
  server.on(instead.tls === undefined ? 'connection' : 'secureConnection', keep);
  server.on('request', (incoming: IncomingMessage, response: ServerResponse) => {
    note(incoming);
    if (instead.onRequest !== undefined) return instead.onRequest(response);
    const { method, url = '' } = incoming;
    const { 'proxy-authorization': _, ...sent } = incoming.headers;
    const path = url.replace(/^http:\/\/[^/]*/, '');
    const forwarded = request({ port: leadsTo, host: '127.0.0.1', method, path, headers: sent }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(forwarded);
  });
  server.on('connect', (incoming: IncomingMessage, client: Socket) => {
    note(incoming);
    // Who reads nothing does not hear that the client has gone.
    if (instead.onConnect !== undefined) return instead.onConnect(client.on('end', () => client.destroy()).resume());
    const target = connect(leadsTo, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      client.pipe(target).pipe(client);
    });
    keep(target);
    client.on('close', () => target.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http${instead.tls === undefined ? '' : 's'}://127.0.0.1:${port}`,
    port,
    asked,
    credentials,
    headers,
    sockets,
  };
}
