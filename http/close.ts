import { type AddressInfo, connect, Server } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { queueOf, setQueue } from './backlog.ts';

/** Milliseconds between two looks into the queue. */
const LOOK = 20;
/** Milliseconds that a server goes on accepting at most, while connections wait in the system's queue. */
const PATIENCE = 10_000;
/** Connections that wait at most, as node has it by default. */
const LENGTH = 511;
/** Looks at a queue in which nobody waits: handshakes of clients who are gone must not hold up a stop. */
const MOST_LOOKS = 50;

/**
 * Has a server accept no more, at once. The `close` of HTTP servers is not used: it also destroys connections whose answer is not
 * yet taken, and stops looking at deadlines.
 */
export function closeListener(server: Server): void {
  Server.prototype.close.call(server);
}

/**
 * Has a server accept all who are connected, and no more. Between a look that finds the queue empty and its end a client could
 * connect, and would be reset; so the queue is filled with a connection of our own, which alone is lost. Processes that listen with
 * the same queue may each do so: the last of them resets nobody.
 *
 * @param hold has requests wait: as long as clients are answered who then connect again, the queue might never be empty.
 */
export async function closeWhenEmpty(server: Server, hold: (isHeld: boolean) => void): Promise<void> {
  const last = performance.now() + PATIENCE;
  for (let looks = 0; ; looks++) {
    setQueue(server, LENGTH);
    hold(true);
    // One connection is accepted in each turn of the event loop: a busy service has a queue of them.
    while ((queueOf(server)?.waiting ?? 0) > 0 && performance.now() < last) await setImmediate();
    if (looks === MOST_LOOKS || performance.now() >= last || (await isPlugged(server))) break;
    setQueue(server, LENGTH);
    hold(false);
    await setTimeout(LOOK * (1 + Math.random()));
  }
  closeListener(server);
  hold(false);
}

/**
 * Fills the queue, from which only other processes take something in this turn of the event loop. It is short for no longer: whoever
 * finds it full asks again after a second, and of many who do so at once the system would have some believe that they are connected.
 * @returns whether nobody waits in it, or is about to.
 */
async function isPlugged(server: Server): Promise<boolean> {
  const plug = connect(reachable(server.address() as AddressInfo)).on('error', () => undefined);
  // Node connects in this turn, when the stack is empty.
  await new Promise<void>((resolve) => process.nextTick(resolve));
  setQueue(server, 0);
  const queue = queueOf(server, plug.localPort);
  // Where another process has taken the plug, it takes whoever comes, too.
  if (queue === undefined || (queue.waiting <= 1 && queue.hasPlug && !queue.hasHandshakes)) return true;
  plug.destroy();
  return false;
}

/** Where this machine finds what listens on an address. */
function reachable({ address, port, family }: AddressInfo): { readonly host: string; readonly port: number } {
  if (/^[0.:]+$/.test(address)) return { host: family === 'IPv6' ? '::1' : '127.0.0.1', port };
  return { host: address, port };
}
