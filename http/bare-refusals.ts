import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** Answers that end their connection, in the form in which node refuses what is no HTTP. */

/** Headers of a request; with more of them, it costs more to take a request apart than to answer it. */
export const MOST_HEADERS = 1000;

const TOO_MANY = 'HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n';
const BAD = 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n';
const NOT_ALLOWED = '{"error":"Method Not Allowed"}';
/** To CONNECT, of which node makes no request: this is no proxy (RFC 9110, section 9.3.6). */
export const NO_TUNNEL = `HTTP/1.1 405 Method Not Allowed\r\nContent-Type: application/json\r\nContent-Length: ${NOT_ALLOWED.length}\r\nConnection: close\r\n\r\n${NOT_ALLOWED}`;

/** The answer to a request that nobody may interpret, if it is one. */
export function refusalOf(request: IncomingMessage): string | undefined {
  if (request.rawHeaders.length > 2 * MOST_HEADERS) return TOO_MANY;
  return namesOneHost(request) ? undefined : BAD;
}

/** Ends a connection with an answer. */
export function refuse(socket: Socket, answer: string): void {
  socket.write(answer);
  socket.destroySoon();
}

/**
 * Whether a request names one host, as it must since HTTP/1.1; whoever is in front may have looked at another one of several
 * than those behind do (RFC 9112, section 3.2).
 */
function namesOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts === 1 || (hosts === 0 && httpVersion !== '1.1');
}
