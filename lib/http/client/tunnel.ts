import { request } from 'node:http';
import type { Socket } from 'node:net';
import { faultText, proxyFault } from './faults.ts';
import type { HttpProxy } from './proxies.ts';

export const WRONG_CREDENTIALS = 'the proxy wants another user name and password (407)';

/**
 * Asks a proxy, to which `socket` is connected, for a tunnel to a server (RFC 9110, section 9.3.6). Afterwards the socket leads
 * to the server.
 *
 * @param authority host and port of the server.
 * @throws Fault when the proxy opens no tunnel.
 */
export async function openTunnel(socket: Socket, authority: string, headers: HttpProxy['headers']): Promise<void> {
  const asked = request({
    method: 'CONNECT',
    path: authority,
    headers: { host: authority, ...headers },
    createConnection: () => socket,
  });
  // The header would be about the tunnel, which must stay open.
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
  // Until the user of the tunnel listens for errors, one without a listener would end the process.
  socket.on('error', () => undefined);
  if (problem === undefined) return;
  socket.destroy();
  throw proxyFault(problem);
}
