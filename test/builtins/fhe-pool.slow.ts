/** Workers that encrypt are bounded in number and time, and are replaced when they fail. */

import assert from 'node:assert/strict';
import { existsSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it, type TestContext } from 'node:test';
import { Pool, type PoolOptions } from '../../builtins/fhe/pool.ts';
import type { Ciphertext, Connection, Task } from '../../builtins/fhe/protocol.ts';
import { spawnWorker } from '../../builtins/fhe/spawn.ts';
import type { OwnedProcess } from '../../lib/process/child-process.ts';
import { eventOf, eventually } from '../support/wait.ts';

const connection: Connection = {
  network: 'sepolia',
  rpcUrl: 'http://127.0.0.1:9',
  verifier: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
};

/** A real process in place of the one with the SDK; what it does with an order is its script. */
const prelude = `
  const done = ({ task }) =>
    process.send({ kind: 'done', ciphertext: { handle: '0x' + task.value.toString(16), inputProof: '0x' } });
  const on = (encrypt, cancel = () => {}) => process.once('message', () =>
    process.on('message', (order) => (order.kind === 'encrypt' ? encrypt(order) : cancel(order))));
`;

/** Takes as many milliseconds as the value says. */
const DILIGENT = 'on((order) => setTimeout(done, Number(order.task.value), order));';
const CRASHING = 'on(() => process.exit(3));';
const THROWING = "on(() => { throw new Error('out of order'); });";
const GREEDY = 'on(() => { const all = []; for (;;) all.push(new Array(1e6).fill(0)); });';
const FAILING = "on(() => process.send({ kind: 'failed', reason: 'no luck' }));";
const STUCK = 'on(() => { for (;;); });';
/** In a call that takes half an hour and hears nothing; before it there is a file that says so. */
const MARK = join(tmpdir(), `sdp-stuck-${process.pid}`);
const STUCK_NATIVELY = `
  on(() => {
    require('fs').writeFileSync(${JSON.stringify(MARK)}, '');
    require('crypto').pbkdf2Sync('', '', 2 ** 31 - 1, 64, 'sha512');
  });
`;
after(() => rmSync(MARK, { force: true }));
const OBEDIENT = `
  let current;
  on((order) => { if (order.task.value === 0n) current = order; else done(order); },
     () => { if (current) process.send({ kind: 'cancelled' }); });
`;

interface TestPool {
  readonly pool: Pool;
  /** Every process that was ever started. */
  readonly workers: OwnedProcess[];
  encrypt(value: number, signal?: AbortSignal): Promise<Ciphertext>;
}

/** @param scripts of the first process, the second and so on; the last one is for all further ones. */
function start(t: TestContext, scripts: readonly string[], options: Partial<PoolOptions> = {}): TestPool {
  const workers: OwnedProcess[] = [];
  const spawn = () => {
    const script = scripts[Math.min(workers.length, scripts.length - 1)] ?? '';
    const worker = spawnWorker(connection, prelude + script);
    workers.push(worker);
    return worker;
  };
  const pool = new Pool({ spawn, workers: 1, queue: 4, timeout: 60_000, lifetime: 3_600_000, ...options });
  t.after(() => pool.stop());
  const task = (value: number): Task => ({
    value: BigInt(value),
    bits: 8,
    contract: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
  });
  return {
    pool,
    workers,
    encrypt: (value, signal = new AbortController().signal) => pool.encrypt(task(value), signal),
  };
}

const failure = (message: string) => ({ name: 'EncryptionFailure', message });

describe('the workers that encrypt', () => {
  it('are not started before there is something to encrypt, and then serve one after the other', async (t) => {
    const { workers, encrypt } = start(t, [DILIGENT]);
    assert.equal(workers.length, 0);
    const handles = await Promise.all([encrypt(30), encrypt(20), encrypt(10)]);
    const texts = handles.map(({ handle }) => handle);
    assert.deepEqual(texts, ['0x1e', '0x14', '0xa']);
    assert.equal(workers.length, 1);
  });

  it('are as many as configured', async (t) => {
    const { workers, encrypt } = start(t, [DILIGENT], { workers: 2 });
    await Promise.all([encrypt(1), encrypt(1), encrypt(1)]);
    assert.equal(workers.length, 2);
  });

  it('are replaced when they crash, for the next value and not before', async (t) => {
    const { workers, encrypt } = start(t, [CRASHING, THROWING, FAILING, DILIGENT]);
    await assert.rejects(encrypt(1), failure('the worker ended with code 3'));
    await assert.rejects(encrypt(1), failure('the worker crashed: out of order'));
    await assert.rejects(encrypt(1), failure('no luck'));
    assert.equal(workers.length, 3);
    assert.equal((await encrypt(1)).handle, '0x1');
    assert.equal(workers.length, 4);
  });

  it('are replaced when they crash between two values', async (t) => {
    const { workers, encrypt } = start(t, [
      'on((order) => { done(order); setTimeout(process.exit, 1, 0); });',
      DILIGENT,
    ]);
    await encrypt(1);
    await workers[0]?.ended;
    assert.equal((await encrypt(2)).handle, '0x2');
    assert.equal(workers.length, 2);
  });

  it('may be impossible to start', async (t) => {
    let attempts = 0;
    const spawn = () => {
      attempts += 1;
      throw new Error('no processes left');
    };
    const { encrypt } = start(t, [], { spawn });
    await assert.rejects(encrypt(1), failure('no worker could be started: no processes left'));
    await assert.rejects(encrypt(1), failure('no worker could be started: no processes left'));
    assert.equal(attempts, 2);
  });

  it('are ended at the deadline when they are stuck, and what waits is served by the next', async (t) => {
    const { workers, encrypt } = start(t, [STUCK, STUCK_NATIVELY, DILIGENT], { timeout: 2000 });
    for (const worker of [0, 1]) {
      await assert.rejects(encrypt(1), failure('not encrypted within 2000 ms'));
      await workers[worker]?.ended;
    }
    assert.equal((await encrypt(1)).handle, '0x1');
  });

  it('end without the service when they fill their heap', async (t) => {
    const { encrypt } = start(t, [GREEDY, DILIGENT]);
    await assert.rejects(encrypt(1), failure('the worker was ended by SIGABRT'));
    assert.equal((await encrypt(1)).handle, '0x1');
  });

  it('are ended when a value that was let go keeps them past its deadline', async (t) => {
    const { pool, workers, encrypt } = start(t, [STUCK, DILIGENT], { timeout: 2000 });
    const client = new AbortController();
    const gone = assert.rejects(encrypt(1, client.signal), failure('the client left'));
    await eventually(() => pool.busy === 1);
    client.abort();
    await gone;
    await workers[0]?.ended;
    assert.equal((await encrypt(1)).handle, '0x1');
  });

  it('are told when a client leaves, and go on', async (t) => {
    const { pool, workers, encrypt } = start(t, [OBEDIENT]);
    const client = new AbortController();
    const gone = assert.rejects(encrypt(0, client.signal), failure('the client left'));
    await eventually(() => pool.busy === 1);
    client.abort();
    await gone;
    assert.equal((await encrypt(5)).handle, '0x5');
    assert.equal(workers.length, 1);
  });

  it('get fresh keys by being replaced after their time', async (t) => {
    const { workers, encrypt } = start(t, [DILIGENT], { lifetime: 0 });
    for (const value of [1, 2, 3]) await encrypt(value);
    assert.equal(workers.length, 3);
  });
});

describe('values that wait for a worker', () => {
  it('are refused at once where too many wait', async (t) => {
    const { encrypt } = start(t, [DILIGENT], { queue: 1 });
    const [running, waiting] = [encrypt(500), encrypt(1)];
    await assert.rejects(encrypt(1), failure('the queue is full (1 waiting)'));
    await Promise.all([running, waiting]);
    assert.equal((await encrypt(1)).handle, '0x1');
  });

  it('need no place in a queue when a worker is free', async (t) => {
    const { encrypt } = start(t, [DILIGENT], { queue: 0 });
    const running = encrypt(300);
    await assert.rejects(encrypt(1), failure('the queue is full (0 waiting)'));
    await running;
    assert.equal((await encrypt(1)).handle, '0x1');
  });

  it('leave with their client and make room', async (t) => {
    const { encrypt } = start(t, [DILIGENT], { queue: 1 });
    const client = new AbortController();
    const running = encrypt(500);
    const waiting = assert.rejects(encrypt(1, client.signal), failure('the client left'));
    client.abort();
    await waiting;
    const next = encrypt(7);
    assert.deepEqual([(await running).handle, (await next).handle], ['0x1f4', '0x7']);
    await assert.rejects(encrypt(1, client.signal), failure('the client left'));
  });

  it('have their deadline too', async (t) => {
    const { encrypt } = start(t, [STUCK], { timeout: 1000 });
    const outcomes = await Promise.allSettled([encrypt(1), encrypt(1)]);
    const ends = outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.message : 'done'));
    assert.deepEqual(ends, ['not encrypted within 1000 ms', 'not encrypted within 1000 ms']);
  });

  it('are not begun when there is no time left to end them', async (t) => {
    const { encrypt } = start(t, [DILIGENT], { timeout: 4000 });
    await encrypt(2000);
    const running = encrypt(2500);
    await assert.rejects(encrypt(1), failure('it waited too long for a worker to be done in time'));
    await running;
  });

  it('fail when the service stops, and so does what runs; the processes are gone then', async (t) => {
    rmSync(MARK, { force: true });
    const { pool, workers, encrypt } = start(t, [STUCK_NATIVELY]);
    const failures = [encrypt(1), encrypt(1)].map((value) => assert.rejects(value, failure('the service stops')));
    await eventually(() => existsSync(MARK), 'the worker to be stuck');
    await pool.stop();
    await Promise.all(failures);
    assert.equal(workers[0]?.child.signalCode, 'SIGKILL');
    await assert.rejects(encrypt(1), failure('the service stops'));
    assert.equal(workers.length, 1);
  });
});

describe('the process of the SDK', () => {
  const said = async (t: TestContext, expression: string): Promise<unknown> => {
    const worker = spawnWorker(
      connection,
      `console.log('dropped'); process.once('message', (told) => process.send(${expression}));`,
    );
    t.after(() => worker.kill());
    const [message] = await eventOf(worker.child, 'message');
    return message;
  };

  it('sees no variable of the service but whose certificates to trust, no argument and a limit for its heap', async (t) => {
    assert.ok(process.env.PATH);
    const { env } = process;
    process.env = { ...env, NODE_EXTRA_CA_CERTS: '/ca.pem' };
    // Other files of this process download packages, for which the machine may need the variable.
    t.after(() => (process.env = env));
    const trust = Object.entries(process.env).filter(([name]) =>
      /^(?:NODE_EXTRA_CA_CERTS|SSL_CERT_(?:FILE|DIR))$/.test(name),
    );
    assert.deepEqual(
      await said(
        t,
        '{ told, env: { ...process.env, NODE_V8_COVERAGE: undefined }, argv: process.argv.slice(1), flag: process.execArgv[0] }',
      ),
      {
        told: connection,
        // Node hands on its own variable for coverage.
        env: { ...Object.fromEntries(trust), NODE_V8_COVERAGE: undefined },
        argv: [],
        flag: '--max-old-space-size=256',
      },
    );
  });

  it('ends when it has lost the service', async () => {
    const worker = spawnWorker(connection, 'process.disconnect()');
    assert.equal(await worker.ended, 'was ended by SIGKILL');
  });

  it('leaves signals to the service', async (t) => {
    const survived = "['SIGINT', 'SIGTERM', 'SIGHUP'].map((signal) => process.kill(process.pid, signal))";
    assert.deepEqual(await said(t, survived), [true, true, true]);
  });
});
