import type { Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { backlogOf, closeQueue } from '../http/backlog.ts';
import type { Connections } from '../http/connections.ts';

/** Milliseconds between two looks at what is open. */
const LOOK = 20;
/** Milliseconds that a server goes on accepting at most after its delay, while connections wait in the system's queue. */
const PATIENCE = 10_000;

/**
 * Has a server stop accepting at once. The `close` of HTTP servers is not used: it also destroys connections whose answer is not
 * yet taken, and stops looking at deadlines.
 */
function closeListener(server: Server): Promise<void> {
  return new Promise((resolve) => NetServer.prototype.close.call(server, () => resolve()));
}

/** Ends connections that wait for nothing, until all are closed. */
async function sweepUntil(closed: Promise<void>, connections: Connections): Promise<void> {
  const bytesRead = new Map<Socket, number>();
  const sweep = setInterval(() => connections.closeIdle(bytesRead), LOOK);
  connections.closeIdle(bytesRead);
  await closed;
  clearInterval(sweep);
}

/**
 * Stops a server while others go on to accept what waits in the queue that they share with it.
 *
 * @param delay milliseconds in which clients learn from an answer that their connection ends.
 */
export async function leave(server: Server, connections: Connections, delay: number): Promise<void> {
  connections.drain();
  const closed = closeListener(server);
  await setTimeout(delay);
  await sweepUntil(closed, connections);
}

/**
 * Stops a server without a reset for anybody who has sent a request. It accepts for a while longer, since connections wait
 * in the system's queue; every answer from now on ends its connection; in the end it closes what waits for nothing.
 *
 * @param delay milliseconds.
 * @returns once every connection is closed.
 */
export async function drain(server: Server, connections: Connections, delay: number): Promise<void> {
  connections.drain();
  await setTimeout(delay);
  // One connection is accepted in each turn of the event loop: a busy service has a queue of them.
  closeQueue(server);
  const last = performance.now() + PATIENCE;
  while (backlogOf(server) > 0 && performance.now() < last) {
    await setTimeout(LOOK);
    // The look comes after the accepts of a turn: only then can the queue be empty while clients keep coming.
    await setImmediate();
  }
  // In the same turn, before another client connects.
  await sweepUntil(closeListener(server), connections);
}
