import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Puts a request back in front of what came behind its headers, so that it is read later. A wish for another protocol is left
 * out: a server may ignore it (RFC 9110, section 7.8).
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
  // One by one: together they would be copied, some 64 KiB each time.
  if (head.length > 0) socket.unshift(head);
  socket.unshift(Buffer.from([...lines, '', ''].join('\r\n'), 'latin1'));
}

/** Has a server read what was put back, once it has answered all that came before. */
export function readAgain(server: Server, socket: Socket): void {
  // Node has forgotten that it timed an idle connection, and would not stop the time for the request.
  socket.setTimeout(0);
  server.emit('connection', socket);
  // Not before: there was nobody to take what comes.
  socket.resume();
}
