import { once } from 'node:events';
import type { Server } from 'node:http';
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { Connections } from './limits.ts';

/** Milliseconds between two sweeps of open connections. */
const POLL_INTERVAL_MS = 20;
/** Most turns of the event loop in which a server waits for a turn without a new connection. */
const MOST_TURNS = 1000;

/**
 * Stops a server, and resolves once every connection is closed. For `delay` it still accepts connections, and every response
 * ends its connection. Then idle connections are closed.
 *
 * @param delay milliseconds in which clients learn from a response that their connection ends.
 */
export async function drain(server: Server, connections: Connections, delay: number): Promise<void> {
  connections.drain();
  await setTimeout(delay);
  const closed = once(server, 'close');
  // `close` would reset connections that wait to be accepted, so these are accepted first.
  for (let turns = 0, before = -1; turns < MOST_TURNS && before !== connections.accepted; turns++) {
    before = connections.accepted;
    await setImmediate();
  }
  server.close();
  const sweep = setInterval(() => {
    server.closeIdleConnections();
    connections.closeSilent();
  }, POLL_INTERVAL_MS);
  await closed;
  clearInterval(sweep);
}
