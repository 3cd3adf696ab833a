import { closeSync, openSync, readlinkSync, readSync } from 'node:fs';
import { type AddressInfo, connect, Server } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { fdOf, setQueue } from './socket-internals.ts';

/** Milliseconds between two looks into the queue. */
const POLL_INTERVAL_MS = 20;
/** Milliseconds that a server goes on accepting at most, while connections wait in the system's queue. */
const ACCEPT_TIMEOUT_MS = 10_000;
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
 * connect, and would be reset. So the queue is filled with a connection of our own, which alone is lost. Processes that listen with
 * the same queue may each do so: the last of them resets nobody.
 *
 * @param hold has requests wait: as long as clients are answered who then connect again, the queue might never be empty.
 */
export async function closeWhenEmpty(server: Server, hold: (isHeld: boolean) => void): Promise<void> {
  const last = performance.now() + ACCEPT_TIMEOUT_MS;
  for (let looks = 0; ; looks++) {
    setQueue(server, LENGTH);
    hold(true);
    // One connection is accepted in each turn of the event loop: a busy service has a queue of them.
    while ((queueOf(server)?.waiting ?? 0) > 0 && performance.now() < last) await setImmediate();
    if (looks === MOST_LOOKS || performance.now() >= last || (await isPlugged(server))) break;
    setQueue(server, LENGTH);
    hold(false);
    await setTimeout(POLL_INTERVAL_MS * (1 + Math.random()));
  }
  closeListener(server);
  hold(false);
}

/**
 * Fills the queue, from which only other processes take something in this turn of the event loop. The queue is kept short for this
 * turn only. A client that finds it full asks again after a second. If many did so at once, the system would let some believe
 * that they are connected.
 * @returns whether nobody waits in it, or is about to.
 */
async function isPlugged(server: Server): Promise<boolean> {
  const { address, port, family } = server.address() as AddressInfo;
  const isAny = /^[0.:]+$/.test(address);
  const plug = connect(port, isAny ? (family === 'IPv6' ? '::1' : '127.0.0.1') : address).on('error', () => undefined);
  // Node connects in this turn, when the stack is empty.
  await new Promise<void>((resolve) => process.nextTick(resolve));
  setQueue(server, 0);
  const queue = queueOf(server, plug.localPort);
  // Where another process has taken the plug, it takes whoever comes, too.
  if (queue === undefined || (queue.waiting <= 1 && queue.hasPlug && !queue.hasHandshakes)) return true;
  plug.destroy();
  return false;
}

/** States in `/proc/self/net/tcp`; `/proc/net` is not there with `ProcSubset=pid` of systemd. */
const ESTABLISHED = '01';
/** The state of a connection whose client has not confirmed it, or whose confirmation found the queue full. */
const HANDSHAKE = '03';

/** What the system holds for a server that listens. */
interface Queue {
  /** Connections that wait to be accepted: closing the server resets them. */
  readonly waiting: number;
  /** Whether clients are about to be in the queue: they may believe to be connected, and closing the server resets them as well. */
  readonly hasHandshakes: boolean;
  /** Whether the connection from this port has come as far as the queue. */
  readonly hasPlug: boolean;
}

/**
 * Looks into the queue of a server.
 * @param plug a port of this machine.
 * @returns nothing where the system does not tell; only Linux does.
 */
export function queueOf(server: Server, plug?: number): Queue | undefined {
  const from = plug?.toString(16).toUpperCase().padStart(4, '0');
  let [port, waiting]: (string | undefined)[] = [];
  let [hasHandshakes, hasPlug] = [false, false];
  try {
    const inode = /\d+/.exec(readlinkSync(`/proc/self/fd/${fdOf(server)}`))?.[0];
    const { family } = server.address() as AddressInfo;
    // Linux lists listening sockets first: ours is in front of its connections.
    for (const line of linesOf(`/proc/self/net/tcp${family === 'IPv6' ? '6' : ''}`)) {
      // Number, local address, remote address, state, lengths of the queues, four more, and the inode.
      const [, local = '', remote = '', state, queues = '', , , , , found] = line.trim().split(/ +/, 10);
      if (found === inode) [port, waiting] = [local.slice(-5), queues.slice(9)];
      if (waiting !== undefined && from === undefined) break;
      if (port === undefined || !local.endsWith(port)) continue;
      hasHandshakes ||= state === HANDSHAKE;
      hasPlug ||= state === ESTABLISHED && from !== undefined && remote.endsWith(`:${from}`);
    }
  } catch {
    return undefined;
  }
  return waiting === undefined ? undefined : { waiting: Number.parseInt(waiting, 16), hasHandshakes, hasPlug };
}

/** The lines of a file; what nobody asks for is not read: the first few tell, however many connections there are. */
function* linesOf(file: string): Generator<string> {
  const descriptor = openSync(file, 'r');
  try {
    const chunk = Buffer.alloc(16 * 1024);
    let rest = '';
    for (let length = readSync(descriptor, chunk); length > 0; length = readSync(descriptor, chunk)) {
      const lines = (rest + chunk.toString('latin1', 0, length)).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
  } finally {
    closeSync(descriptor);
  }
}
