import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Puts a request that asks for another protocol back, without the wish: a server may ignore it (RFC 9110, section 7.8).
 * Without a listener for it node drops whatever came behind such a request.
 *
 * @param head what came behind the headers.
 */
export function putBack(request: IncomingMessage, socket: Socket, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.toLowerCase() !== 'upgrade') lines.push(`${name}: ${rawHeaders[i + 1]}`);
  }
  const text = [...lines, '', ''].join('\r\n');
  socket.unshift(Buffer.concat([Buffer.from(text, 'latin1'), head]));
}

/** Has a server read what was put back, once it has answered all that came before. */
export function readAgain(server: Server, socket: Socket): void {
  // Node has forgotten that it timed an idle connection, and would not stop the time for the request.
  socket.setTimeout(0);
  server.emit('connection', socket);
}

const NO_TUNNEL = '{"error":"Method Not Allowed"}';

/** Answers CONNECT, of which node makes no request: this is no proxy (RFC 9110, section 9.3.6). */
export function refuseTunnel(socket: Socket): void {
  const headers = `Content-Type: application/json\r\nContent-Length: ${NO_TUNNEL.length}\r\nConnection: close`;
  socket.end(`HTTP/1.1 405 Method Not Allowed\r\n${headers}\r\n\r\n${NO_TUNNEL}`);
}
