import { once } from 'node:events';
import type { Server } from 'node:http';
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { Connections } from './limits.ts';

/** Milliseconds between two looks at what is open. */
const POLL_INTERVAL_MS = 20;
/** Turns of the event loop in which a server waits for one that accepts nothing. */
const MOST_TURNS = 1000;

/**
 * Stops a server. It accepts for a while longer, and every answer from now on ends its connection. In the end what waits for nothing
 * is closed.
 *
 * @param delay milliseconds in which clients learn from an answer that their connection ends.
 * @returns once every connection is closed.
 */
export async function drain(server: Server, connections: Connections, delay: number): Promise<void> {
  connections.drain();
  await setTimeout(delay);
  const closed = once(server, 'close');
  // Closing resets the connections that wait to be accepted.
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
