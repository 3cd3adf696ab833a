/** The thread in which the SDK runs. It takes one order to encrypt at a time, and orders to cancel that one. */
import { constants, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { Agent, setGlobalDispatcher } from 'undici';
import { borrowHostNames } from '../../plugins-sdk/host-names/index.ts';
import { boundedFetch } from './bounded-fetch.ts';
import type { Connection, Order, Report } from './protocol.ts';
import { reasonOf } from './reason.ts';
import { openSession, type Session } from './session.ts';

const connection: Connection = workerData;
let session: Session | undefined;
let current: { readonly id: number; readonly controller: AbortController } | undefined;

/** Lowers the thread's priority, so that requests go first on busy cores. Only Linux has a priority per thread. */
function stepBack(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // Some containers forbid it.
  }
}

async function obey({ id, task, timeout }: Extract<Order, { kind: 'encrypt' }>): Promise<Report> {
  const controller = new AbortController();
  current = { id, controller };
  let step = 'connecting to the relayer';
  try {
    session ??= await openSession(connection);
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

/** The SDK's own calls must not block the threads that look names up for the whole process. */
function lookNamesUp(): void {
  setGlobalDispatcher(new Agent({ connect: { lookup: borrowHostNames().lookup } }));
}

stepBack();
lookNamesUp();
globalThis.fetch = boundedFetch(globalThis.fetch);
parentPort?.on('message', async (order: Order) => {
  if (order.kind === 'encrypt') parentPort?.postMessage(await obey(order));
  else if (current?.id === order.id) current.controller.abort();
});
