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
  // In the same turn, before another client connects. The `close` of HTTP servers is not used: it also destroys connections
  // whose answer is not yet taken, and stops looking at deadlines.
  const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  const bytesRead = new Map<Socket, number>();
  const sweep = setInterval(() => connections.closeIdle(bytesRead), LOOK);
  connections.closeIdle(bytesRead);
  await closed;
  clearInterval(sweep);
}
