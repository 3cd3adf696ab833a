import type { ChildProcess } from 'node:child_process';
import cluster from 'node:cluster';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { withTimeout } from '../../lib/time.ts';
import type { ProcessLog } from '../log.ts';
import { type Ask, openLine } from './line.ts';
import { ANSWER_TIMEOUT_MS, type FromPrimary, type FromWorker, IDENTITY, type Lasting } from './link.ts';

/** Milliseconds to wait after a worker that could not start, before it is replaced. */
const RETRY_DELAY_MS = 2000;
/** Milliseconds that a worker has to load and start a config. */
const RELOAD_TIMEOUT_MS = 120_000;
/** Milliseconds for a process's last output to arrive after it has ended. */
const LAST_OUTPUT_TIMEOUT_MS = 1000;

/** What is said where the first worker ends or hangs while it tries a new config. */
const UNTRIED = 'a worker gave no answer to the reload, and the others keep the config before: reload again';

interface Worker {
  readonly number: number;
  readonly child: ChildProcess;
  readonly ask: Ask<FromPrimary>;
  isReady: boolean;
}

/** The primary process: starts workers, replaces those that end, and has them reload and stop. It serves nothing. */
export class Primary {
  readonly #count: number;
  readonly #log: ProcessLog;
  readonly #variables: Readonly<Record<string, string>>;
  readonly #workers = new Set<Worker>();
  /** A loop for each worker but the first, which keeps it running. It resolves with the exit code of the last process. */
  readonly #others: Promise<number>[] = [];
  readonly #stop = new AbortController();
  #lasting: Lasting | undefined;
  #restarts = 0;
  /** Whether all workers have been ready at once, which is said once. */
  #isComplete = false;

  /** @param variables environment variables that workers get in addition to those of this process. */
  constructor(count: number, log: ProcessLog, variables: Readonly<Record<string, string>>) {
    this.#count = count;
    this.#log = log;
    this.#variables = variables;
  }

  /** Runs the workers; resolves with the exit code after a signal and their end. @throws Error when the first cannot start. */
  async run(signalled: Promise<string>): Promise<number> {
    // Each worker accepts connections itself: a connection handed to a worker that is killed would be lost.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    cluster.setupPrimary({ stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
    void signalled.then((signal) => {
      this.#log.info('stopping', { signal });
      this.#stop.abort();
      for (const { child } of this.#workers) child.kill('SIGTERM');
    });
    // One worker starts first: a fault in the config is then reported once, not by every worker.
    const code = await this.#keep(1);
    const codes = await Promise.all(this.#others);
    if (this.#stop.signal.aborted) this.#log.info('stopped');
    return Math.max(code, ...codes);
  }

  /** Keeps a worker running until the stop: starts it, and replaces it when it ends. */
  async #keep(number: number): Promise<number> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const worker = this.#fork(number);
      const { child } = worker;
      const how = await endOf(child);
      this.#workers.delete(worker);
      if (signal.aborted) return worker.isReady && child.exitCode !== 0 ? 1 : 0;
      if (this.#others.length === 0) {
        // With exit code 1 the worker has written the reason to stderr.
        if (child.exitCode === 1) return 1;
        throw new Error(`a worker ${how} before it was ready`);
      }
      this.#restarts += 1;
      const wait = worker.isReady ? 0 : RETRY_DELAY_MS;
      const what = worker.isReady ? `a worker ${how}` : 'a worker cannot start';
      this.#log.error(`${what}: it is replaced in ${wait} ms`, { worker: number, pid: child.pid });
      await sleep(wait, undefined, { signal }).catch(() => undefined);
    }
    return 0;
  }

  #fork(number: number): Worker {
    const identity = { number, count: this.#count, restarts: this.#restarts, lasting: this.#lasting };
    const made = cluster.fork({ ...this.#variables, [IDENTITY]: JSON.stringify(identity) });
    // Errors that matter are also emitted by the process.
    made.on('error', () => undefined);
    const child = made.process;
    if (child.stdout) createInterface(child.stdout).on('line', (text) => this.#log.pass(`${text}\n`));
    const ask: Worker['ask'] = openLine(child, (message: FromWorker) => this.#hear(worker, message));
    const worker = { number, child, ask, isReady: false };
    this.#workers.add(worker);
    return worker;
  }

  /** Answers a worker. @returns the values of the other workers for the topic that it asks for. */
  #hear(worker: Worker, message: FromWorker): unknown {
    const others = [...this.#workers].filter((other) => other !== worker && other.isReady);
    if (message.kind === 'gather') {
      const { topic } = message;
      return Promise.all(others.map(({ ask }) => ask({ kind: 'offer', topic }, ANSWER_TIMEOUT_MS)));
    }
    worker.isReady = true;
    this.#lasting ??= message.lasting;
    if (this.#stop.signal.aborted) return undefined;
    while (this.#others.length < this.#count - 1) this.#others.push(this.#keep(this.#others.length + 2));
    if (!this.#isComplete && others.length === this.#count - 1) {
      this.#isComplete = true;
      this.#log.info(`${this.#count} workers are ready`);
    } else if (this.#restarts > 0) {
      this.#log.info('a worker is ready', { worker: worker.number, pid: worker.child.pid });
    }
    return undefined;
  }

  /**
   * Lets one worker try the new config, then the others. Each logs its own faults, and queues its reloads.
   * @returns whether the new config is in force.
   */
  async reload(): Promise<boolean> {
    // Workers that still start are asked, too: they may have read the old files, and reload once they serve.
    const [first, ...others] = this.#workers;
    if (first === undefined || this.#stop.signal.aborted) return false;
    const isTaken = await first.ask({ kind: 'reload', isFirst: true }, RELOAD_TIMEOUT_MS);
    if (isTaken === undefined && !this.#stop.signal.aborted)
      this.#log.error(UNTRIED, { worker: first.number, pid: first.child.pid });
    // One that refuses the config has said so.
    if (isTaken !== true) return false;
    const taken = others.map(async ({ ask, child }) => {
      const isTaken = await ask({ kind: 'reload', isFirst: false }, RELOAD_TIMEOUT_MS);
      // It would serve by the old config. What replaces it reads the new one.
      if (isTaken !== true) child.kill('SIGTERM');
      return isTaken;
    });
    const workers = 1 + (await Promise.all(taken)).filter(Boolean).length;
    this.#log.info('the new config is in force', { workers });
    return true;
  }
}

/** Waits for the end of a process and for its last output. @returns how it ended. */
async function endOf(child: ChildProcess): Promise<string> {
  const closed = once(child, 'close').catch(() => undefined);
  const how = await once(child, 'exit').then(
    ([code, signal]) => (signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`),
    ({ message }) => `could not be made (${message})`,
  );
  await withTimeout(LAST_OUTPUT_TIMEOUT_MS, closed);
  return how;
}
