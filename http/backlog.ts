import { readFileSync } from 'node:fs';
import type { Server } from 'node:net';

/** State of a listening socket in `/proc/net/tcp`. */
const LISTENING = '0A';

/**
 * Connections that the system has taken for a server and that wait to be accepted: closing the server resets them.
 * @returns 0 where the system does not tell; only Linux does.
 */
export function backlogOf(server: Server): number {
  const address = server.address();
  if (typeof address !== 'object' || address === null) return 0;
  const port = address.port.toString(16).toUpperCase().padStart(4, '0');
  return linesOf('/proc/net/tcp', '/proc/net/tcp6').reduce((sum, line) => {
    // Number, local address, remote address, state, length of the send and of the receive queue.
    const [, local = '', , state, queues = ''] = line.trim().split(/ +/);
    const waits = state === LISTENING && local.endsWith(`:${port}`);
    return sum + (waits ? Number.parseInt(queues.split(':')[1] ?? '0', 16) : 0);
  }, 0);
}

function linesOf(...files: readonly string[]): string[] {
  return files.flatMap((file) => {
    try {
      return readFileSync(file, 'utf8').split('\n').slice(1);
    } catch {
      return [];
    }
  });
}
