import cluster from 'node:cluster';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { Connections } from './limits.ts';

/** Milliseconds between two sweeps of open connections. */
const POLL_INTERVAL_MS = 20;
/** Milliseconds without a new connection after which a worker closes, and the most that it waits for them, of a full queue. */
const WORKER_WAITS_MS = { quiet: 10, most: 400 };
/** Most connections that are still accepted just before a server closes: more than its queue holds, which is 4,096. */
const MOST_WAITING = 5000;

/**
 * Stops a server, and resolves once every connection is closed. For `delay` it still accepts connections, and every response
 * ends its connection. Then idle connections are closed.
 *
 * @param delay milliseconds in which clients learn from a response that their connection ends.
 */
export async function drain(server: Server, connections: Connections, delay: number): Promise<void> {
  connections.drain();
  await setTimeout(delay);
  const closed = new Promise((resolve) => server.once('close', resolve));
  const accepted: Socket[] = [];
  const read = () => {
    for (const socket of accepted) socket.resume();
  };
  server.on('connection', (socket) => {
    accepted.push(socket);
    process.nextTick(() => socket.pause());
    // There is no room for more: connections that have sent nothing are closed in their favour.
    socket.once('close', () => server.listening && read());
  });
  // `close` would reset connections that wait to be accepted, so these are accepted first. A turn of the event loop accepts one:
  // they are read only afterwards, or clients that connect again after each answer would leave no turn without any. Workers share
  // the queue, which the primary resets once all of them have closed it: they wait until such clients are held.
  const last = cluster.isWorker ? performance.now() + WORKER_WAITS_MS.most : Number.POSITIVE_INFINITY;
  for (let before = -1; before < accepted.length && before < MOST_WAITING && performance.now() < last; ) {
    before = accepted.length;
    // A late timer fires before waiting connections are accepted. One more turn accepts them.
    await (cluster.isWorker ? setTimeout(WORKER_WAITS_MS.quiet).then(() => setImmediate()) : setImmediate());
  }
  server.close();
  read();
  const sweep = setInterval(() => {
    server.closeIdleConnections();
    connections.closeSilent();
  }, POLL_INTERVAL_MS);
  await closed;
  clearInterval(sweep);
}
