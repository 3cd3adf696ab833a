/** The process that runs the SDK. It gets a connection first, then one order to encrypt at a time, and orders to cancel it. */
import { constants, setPriority } from 'node:os';
import { boundedFetch } from './bounded-fetch.ts';
import type { Connection, Order, Report, Task } from './protocol.ts';
import { reasonOf } from './reason.ts';
import { openSession } from './session.ts';

let session: Awaited<ReturnType<typeof openSession>> | undefined;
let controller = new AbortController();

/** Lowers the priority, so that requests go first on busy cores. Called after the session's fetches, which have deadlines. */
function stepBack(): void {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // Some containers forbid it.
  }
}

async function encrypt(connection: Connection, task: Task, timeout: number): Promise<Report> {
  controller = new AbortController();
  const { signal } = controller;
  let step = 'connecting to the relayer';
  try {
    session ??= await openSession(connection);
    stepBack();
    // No proof is made if the client has left meanwhile.
    if (signal.aborted) return { kind: 'cancelled' };
    step = 'encrypting';
    return { kind: 'done', ciphertext: await session.encrypt(task, timeout, signal) };
  } catch (error) {
    if (signal.aborted) return { kind: 'cancelled' };
    return { kind: 'failed', reason: `${step}: ${reasonOf(error)}` };
  }
}

globalThis.fetch = boundedFetch(globalThis.fetch);
const report = (what: Report) => process.send?.(what);
process.once('message', (connection: Connection) => {
  process.on('message', async (order: Order) => {
    if (order.kind === 'encrypt') report(await encrypt(connection, order.task, order.timeout));
    else controller.abort();
  });
});
