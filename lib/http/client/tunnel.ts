import { request } from 'node:http';
import type { Socket } from 'node:net';
import { faultText, ProxyFailure } from './faults.ts';
import type { HttpProxy } from './proxies.ts';

/** What kept a client from a proxy. */
export function unreachable(error: Error): ProxyFailure {
  return new ProxyFailure(`the proxy cannot be reached: ${faultText(error)}`);
}

export const WRONG_CREDENTIALS = 'the proxy wants another user name and password (407)';

/**
 * Asks a proxy, to which `socket` is connected, for a tunnel to a server (RFC 9110, section 9.3.6).
 *
 * @param authority host and port of the server.
 * @param callback called once, without an error when all that is written to the socket goes to the server from now on.
 */
export function openTunnel(
  socket: Socket,
  authority: string,
  { headers }: HttpProxy,
  callback: (error: ProxyFailure | undefined) => void,
): void {
  const fail = (message: string) => {
    socket.destroy();
    callback(new ProxyFailure(message));
  };
  const asked = request({
    method: 'CONNECT',
    path: authority,
    headers: { host: authority, ...headers },
    createConnection: () => socket,
  });
  // It is about the tunnel, which nobody wants to be closed.
  asked.removeHeader('connection');
  asked.once('error', (error) => fail(`the proxy gave no answer: ${faultText(error)}`));
  asked.once('connect', ({ statusCode = 0 }, _socket, early: Buffer) => {
    // Whoever uses the tunnel listens later.
    socket.on('error', () => undefined);
    if (statusCode === 407) fail(WRONG_CREDENTIALS);
    else if (statusCode < 200 || statusCode > 299) fail(`the proxy refuses to connect: status ${statusCode}`);
    else if (early.length > 0) fail('the proxy sent bytes that nobody had asked the server for');
    else callback(undefined);
  });
  asked.end();
}
