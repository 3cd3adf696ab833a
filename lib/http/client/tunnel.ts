import { request } from 'node:http';
import type { Socket } from 'node:net';
import { faultText, proxyFault } from './faults.ts';
import type { HttpProxy } from './proxies.ts';

export const WRONG_CREDENTIALS = 'the proxy wants another user name and password (407)';

/**
 * Asks a proxy, to which `socket` is connected, for a tunnel to a server (RFC 9110, section 9.3.6). Then all that is written to the
 * socket goes to the server.
 *
 * @param authority host and port of the server.
 * @throws Fault
 */
export async function openTunnel(socket: Socket, authority: string, headers: HttpProxy['headers']): Promise<void> {
  const asked = request({
    method: 'CONNECT',
    path: authority,
    headers: { host: authority, ...headers },
    createConnection: () => socket,
  });
  // It is about the tunnel, which nobody wants to be closed.
  asked.removeHeader('connection');
  const problem = await new Promise<string | undefined>((resolve) => {
    asked.once('error', (error) => resolve(`the proxy gave no answer: ${faultText(error)}`));
    asked.once('connect', ({ statusCode = 0 }, _socket, early: Buffer) => {
      if (statusCode === 407) resolve(WRONG_CREDENTIALS);
      else if (statusCode < 200 || statusCode > 299) resolve(`the proxy refuses to connect: status ${statusCode}`);
      else resolve(early.length > 0 ? 'the proxy sent bytes that nobody had asked the server for' : undefined);
    });
    asked.end();
  });
  // The tunnel's user listens later.
  socket.on('error', () => undefined);
  if (problem === undefined) return;
  socket.destroy();
  throw proxyFault(problem);
}
