import { once } from 'node:events';
import type { Server } from 'node:http';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { closeListener, closeWhenEmpty } from '../../http/close.ts';
import type { Connections } from '../../http/connections.ts';
import { LATE, withTimeout } from '../../plugins-sdk/lib/time/with-timeout.ts';
import type { Debts } from '../../plugins-sdk/state/debts.ts';

/** Milliseconds that work in flight has to finish after a signal, and that it has while somebody is owed for it. */
export const DRAIN_TIME_MS = 25_000;
export const LONGEST_DRAIN_MS = 45_000;
/** Milliseconds for an answer to get out once nothing is owed for it any more. */
const LAST_WORDS_MS = 1000;

/** Milliseconds between two looks at what is open. */
const POLL_INTERVAL_MS = 20;
/** Milliseconds that a client who has connected has to send something: one that is new may be slow, on a busy machine. */
const FIRST_BYTE_TIMEOUT_MS = 1000;

/**
 * Stops a server without a reset for anybody who has sent a request. It accepts for a while longer, since connections wait
 * in the system's queue. Every answer from now on ends its connection; in the end it closes what waits for nothing.
 *
 * @param delay milliseconds in which clients learn from an answer that their connection ends.
 * @param others whether other processes go on to accept what waits in the queue that they share with it.
 * @returns once every connection is closed.
 */
export async function drain(server: Server, connections: Connections, delay: number, others = false): Promise<void> {
  connections.drain();
  await setTimeout(delay);
  const closed = once(server, 'close');
  if (others) closeListener(server);
  else await closeWhenEmpty(server, (isHeld) => connections.hold(isHeld));
  await sweepUntil(closed, connections);
}

/** Ends connections that wait for nothing, until all are closed. */
async function sweepUntil(closed: Promise<unknown>, connections: Connections): Promise<void> {
  let isOpen = true;
  const ended = closed.then(() => {
    isOpen = false;
  });
  while (isOpen) {
    const before = performance.now();
    await setImmediate();
    // What clients have sent was read, unless this turn of the event loop took long.
    if (performance.now() - before < POLL_INTERVAL_MS) connections.closeIdle(FIRST_BYTE_TIMEOUT_MS);
    await Promise.race([ended, setTimeout(POLL_INTERVAL_MS)]);
  }
}

/**
 * Waits for the end of work in flight, within bounds that are wider while clients are owed something.
 *
 * @param delay milliseconds for which the service goes on to accept.
 * @returns whether the work ended; what is owed beyond it is for the debts to tell.
 */
export async function drained(work: Promise<unknown>, debts: Debts, delay: number): Promise<boolean> {
  const last = performance.now() + LONGEST_DRAIN_MS + delay;
  let isOver = false;
  const ended = work.then(() => {
    isOver = true;
    return debts.paid();
  });
  let isDone = (await withTimeout(DRAIN_TIME_MS + delay, ended)) !== LATE;
  while (!isDone && debts.size > 0 && performance.now() < last) {
    await withTimeout(last - performance.now(), Promise.race([ended, debts.paid()]));
    isDone = (await withTimeout(Math.min(LAST_WORDS_MS, Math.max(last - performance.now(), 0)), ended)) !== LATE;
  }
  return isOver;
}
