/** When the pool of FHE workers starts a process: the processes are pretended, and the test moves the clock. */

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import { describe, it, type TestContext } from 'node:test';
import { Pool, type PoolOptions } from '../../builtins/fhe/pool.ts';
import type { Order, Report, Task } from '../../builtins/fhe/protocol.ts';
import type { OwnedProcess } from '../../lib/process/child-process.ts';
import { deferred } from '../../lib/time.ts';

const ENCRYPTED: Report = { kind: 'done', ciphertext: { handle: '0x01', inputProof: '0x02' } };
const FAILED: Report = { kind: 'failed', reason: 'no luck' };
const TASK: Task = { value: 1n, bits: 8, contract: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' };
/** Milliseconds from a kill to the end of the process. */
const DYING_MS = 20;

/** A process that reports on each value at once. */
function pretend(report: () => Report) {
  const end = deferred<string>();
  const child = Object.assign(new EventEmitter(), {
    connected: true,
    send: ({ kind }: Order) => kind === 'encrypt' && child.emit('message', report()),
  });
  return { child, ended: end.promise, kill: () => void setTimeout(end.resolve, DYING_MS, 'was killed') };
}

/** A pool on a clock that only `pass` moves. */
function start(t: TestContext, options: Partial<PoolOptions> = {}) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  syncBuiltinESMExports();
  t.after(() => t.mock.restoreAll());
  t.after(() => t.mock.timers.reset());
  t.after(syncBuiltinESMExports);
  const workers: ReturnType<typeof pretend>[] = [];
  const next = { report: ENCRYPTED };
  const spawn = () => {
    const worker = pretend(() => next.report);
    workers.push(worker);
    return worker as unknown as OwnedProcess;
  };
  const pool = new Pool({ lifetime: 60_000, timeout: 20_000, workers: 1, queue: 8, ...options, spawn });
  const encrypt = (signal = new AbortController().signal) => pool.encrypt(TASK, signal);
  return {
    ...{ pool, workers, encrypt },
    succeeds: () => {
      next.report = ENCRYPTED;
      return encrypt();
    },
    fails: () => {
      next.report = FAILED;
      return assert.rejects(encrypt(), { message: 'no luck' });
    },
    pass: async (milliseconds: number) => {
      now += milliseconds;
      t.mock.timers.tick(milliseconds);
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

describe('after a failure, the pool of FHE workers', () => {
  it('counts the failures of one outage as one', async (t) => {
    const { workers, fails, pass } = start(t, { workers: 4 });
    const outage = () => Promise.all([fails(), fails(), fails(), fails()]);
    await outage();
    for (const [pause, starts] of [
      [250, 4],
      [500, 8],
    ] as const) {
      const again = outage();
      await pass(pause - 1);
      assert.equal(workers.length, starts);
      await pass(1);
      assert.equal(workers.length, starts + 4);
      await again;
    }
  });

  it('starts no process beside one that has failed and not ended yet', async (t) => {
    const { workers, succeeds, fails, pass } = start(t, { workers: 2 });
    await fails();
    await pass(250 - DYING_MS / 2);
    // Its pause is that of the first failure, and almost over.
    await fails();
    const both = [succeeds(), succeeds()];
    await pass(DYING_MS / 2);
    assert.equal(workers.length, 3);
    await pass(DYING_MS / 2);
    assert.equal(workers.length, 4);
    await Promise.all(both);
  });

  it('pauses as many workers as there are, without a warning of Node.js', async (t) => {
    const { fails } = start(t, { workers: 11 });
    const warned = t.mock.method(process, 'emitWarning');
    await Promise.all(Array.from({ length: 11 }, () => fails()));
    assert.equal(warned.mock.callCount(), 0);
  });

  it('encrypts by a worker that has not failed', async (t) => {
    const { workers, encrypt, succeeds, fails } = start(t, { workers: 2 });
    await Promise.all([encrypt(), encrypt()]);
    await fails();
    await succeeds();
    assert.equal(workers.length, 2);
  });

  it('forgets with a success how long to pause', async (t) => {
    const { workers, succeeds, fails, pass } = start(t, { workers: 2 });
    await fails();
    await pass(250);
    await fails();
    const next = succeeds();
    await pass(DYING_MS);
    await next;
    // Without the success, the pause would go on for 500 ms.
    await fails();
    const last = succeeds();
    await pass(249);
    assert.equal(workers.length, 3);
    await pass(1);
    assert.equal(workers.length, 4);
    await last;
  });
});

it('an FHE worker keeps nothing of the values that it has encrypted', async (t) => {
  const { workers, encrypt } = start(t);
  await encrypt();
  const [worker] = workers;
  assert.ok(worker);
  const listened = t.mock.method(worker.ended, 'then');
  await encrypt();
  assert.deepEqual([listened.mock.callCount(), worker.child.listenerCount('message')], [0, 1]);
});

describe('an FHE worker that is too old', () => {
  const old = async (t: TestContext) => {
    const pool = start(t, { lifetime: 1000 });
    await pool.encrypt();
    await pool.pass(1001);
    return pool;
  };

  it('has ended before the next one starts, which needs as much memory', async (t) => {
    const { workers, encrypt, pass } = await old(t);
    const next = encrypt();
    await pass(DYING_MS - 1);
    assert.equal(workers.length, 1);
    await pass(1);
    await next;
    assert.equal(workers.length, 2);
  });

  it('is not replaced when the client leaves meanwhile', async (t) => {
    const { workers, encrypt, pass } = await old(t);
    const client = new AbortController();
    const gone = assert.rejects(encrypt(client.signal), { message: 'the client left' });
    client.abort();
    await gone;
    await pass(DYING_MS);
    assert.equal(workers.length, 1);
    await encrypt();
    assert.equal(workers.length, 2);
  });

  it('is not replaced when the service stops meanwhile', async (t) => {
    const { pool, workers, encrypt, pass } = await old(t);
    const refused = assert.rejects(encrypt(), { message: 'the service stops' });
    const stopped = pool.stop();
    await pass(DYING_MS);
    await Promise.all([stopped, refused]);
    assert.equal(workers.length, 1);
  });
});
