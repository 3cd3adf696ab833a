import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

/** How often a connection may ask for another protocol: node leaves listeners behind each time. */
const MOST_UPGRADES = 4;

const upgrades = new WeakMap<Socket, number>();

/**
 * Has a request that asks for another protocol read as if it did not: a server may ignore the wish (RFC 9110, section 7.8).
 * Without a listener for it node drops whatever came behind such a request.
 *
 * @param head what came behind the headers.
 */
export function readAgain(server: Server, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const count = (upgrades.get(socket) ?? 0) + 1;
  if (count > MOST_UPGRADES) {
    socket.destroy();
    return;
  }
  upgrades.set(socket, count);
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.toLowerCase() !== 'upgrade') lines.push(`${name}: ${rawHeaders[i + 1]}`);
  }
  const text = [...lines, '', ''].join('\r\n');
  socket.unshift(Buffer.concat([Buffer.from(text, 'latin1'), head]));
  server.emit('connection', socket);
}
