/** The process in which the SDK runs. After its connection it takes one order to encrypt at a time, and orders to cancel that one. */
import { constants, setPriority } from 'node:os';
import { boundedFetch } from './bounded-fetch.ts';
import type { Connection, Order, Report } from './protocol.ts';
import { reasonOf } from './reason.ts';
import { openSession, type Session } from './session.ts';

let session: Session | undefined;
let current: { readonly id: number; readonly controller: AbortController } | undefined;

/** Lowers its priority, so that requests go first on busy cores. Only proofs wait: what the session fetches has deadlines. */
function stepBack(): void {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // Some containers forbid it.
  }
}

type Encrypt = Extract<Order, { kind: 'encrypt' }>;

async function obey(connection: Connection, { id, task, timeout }: Encrypt): Promise<Report> {
  const controller = new AbortController();
  current = { id, controller };
  let step = 'connecting to the relayer';
  try {
    session ??= await openSession(connection);
    stepBack();
    // A client that has left meanwhile needs no proof.
    if (controller.signal.aborted) return { kind: 'cancelled', id };
    step = 'encrypting';
    const ciphertext = await session.encrypt(task, timeout, controller.signal);
    return { kind: 'done', id, ciphertext };
  } catch (error) {
    if (controller.signal.aborted) return { kind: 'cancelled', id };
    return { kind: 'failed', id, reason: `${step}: ${reasonOf(error)}` };
  } finally {
    current = undefined;
  }
}

globalThis.fetch = boundedFetch(globalThis.fetch);
const report = (what: Report) => process.send?.(what);
process.once('message', (connection: Connection) => {
  process.on('message', async (order: Order) => {
    if (order.kind === 'encrypt') report(await obey(connection, order));
    else if (current?.id === order.id) current.controller.abort();
  });
});
