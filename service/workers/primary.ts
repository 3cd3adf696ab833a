import type { ChildProcess } from 'node:child_process';
import cluster from 'node:cluster';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { deferred, withTimeout } from '../../lib/time.ts';
import type { ProcessLog } from '../log.ts';
import { Line } from './line.ts';
import { ANSWER_TIMEOUT_MS, type FromPrimary, type FromWorker, IDENTITY, type Lasting } from './link.ts';

/** Milliseconds to wait after a worker that could not start, before it is replaced. */
const RETRY_DELAY_MS = 2000;
/** Milliseconds that a worker has to load and start a config. */
const RELOAD_TIMEOUT_MS = 120_000;
/** Milliseconds for a process's last output to arrive after it has ended. */
const LAST_OUTPUT_TIMEOUT_MS = 1000;

/** What is said where the first worker has died, or hangs, while it tries a new config. */
const UNTRIED = 'a worker gave no answer to the reload, and the others keep the config before: reload again';

interface Worker {
  readonly number: number;
  readonly child: ChildProcess;
  readonly line: Line<FromWorker, FromPrimary>;
  isReady: boolean;
  isEnding: boolean;
}

/** The primary process: starts workers, replaces those that end, and has them reload and stop. It serves nothing. */
export class Primary {
  readonly #count: number;
  readonly #log: ProcessLog;
  readonly #variables: Readonly<Record<string, string>>;
  /** The running workers by their numbers. */
  readonly #workers = new Map<number, Worker>();
  /** Resolved when a worker ends before all were ready. `why` is absent if the worker has said the reason itself. */
  readonly #failed = deferred<{ readonly why?: string }>();
  /** A loop for each number, which keeps a worker running. It resolves with whether the last one ended well. */
  readonly #kept: Promise<boolean>[] = [];
  readonly #stop = new AbortController();
  #lasting: Lasting | undefined;
  #serves = false;
  #restarts = 0;

  /** @param variables environment variables that workers get in addition to those of this process. */
  constructor(count: number, log: ProcessLog, variables: Readonly<Record<string, string>>) {
    this.#count = count;
    this.#log = log;
    this.#variables = variables;
  }

  /** Runs the workers; resolves with the exit code after a signal and their end. @throws Error when they could not start. */
  async run(signalled: Promise<string>): Promise<number> {
    // Each worker accepts connections itself: a connection handed to a worker that is killed would be lost.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    cluster.setupPrimary({ stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
    // One worker starts first: a fault in the config is then reported once, not by every worker.
    this.#kept.push(this.#keep(1));
    const end = await Promise.race([signalled, this.#failed.promise]);
    this.#stop.abort();
    if (typeof end === 'string') this.#log.info('stopping', { signal: end });
    for (const { child } of this.#workers.values()) child.kill('SIGTERM');
    const isClean = (await Promise.all(this.#kept)).every(Boolean);
    if (typeof end === 'string') this.#log.info('stopped');
    else if (end.why !== undefined) throw new Error(end.why);
    return isClean ? 0 : 1;
  }

  /** Keeps a worker running at a number until the stop: starts it, and replaces it when it ends. */
  async #keep(number: number): Promise<boolean> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const worker = this.#fork(number);
      const how = await endOf(worker.child);
      this.#workers.delete(number);
      const { isReady, child } = worker;
      if (signal.aborted) return !isReady || child.exitCode === 0;
      if (!this.#serves) {
        // With exit code 1 the worker has written the reason to stderr.
        this.#failed.resolve(child.exitCode === 1 ? {} : { why: `a worker ${how} before all were ready` });
        return false;
      }
      this.#restarts += 1;
      const wait = isReady ? 0 : RETRY_DELAY_MS;
      const what = isReady ? `a worker ${how}` : 'a worker cannot start';
      this.#log.error(`${what}: it is replaced in ${wait} ms`, { worker: number, pid: child.pid });
      await sleep(wait, undefined, { signal }).catch(() => undefined);
    }
    return true;
  }

  #fork(number: number): Worker {
    const identity = { number, count: this.#count, restarts: this.#restarts, lasting: this.#lasting };
    const made = cluster.fork({ ...this.#variables, [IDENTITY]: JSON.stringify(identity) });
    // Errors that matter are also emitted by the process.
    made.on('error', () => undefined);
    const child = made.process;
    if (child.stdout) createInterface(child.stdout).on('line', (text) => this.#log.pass(`${text}\n`));
    const line: Worker['line'] = new Line(child, (message) => this.#hear(worker, message));
    const worker = { number, child, line, isReady: false, isEnding: false };
    this.#workers.set(number, worker);
    return worker;
  }

  #hear(worker: Worker, message: FromWorker): unknown {
    if (message.kind === 'gather') return this.#gather(worker, message.topic);
    if (message.kind === 'ending') worker.isEnding = true;
    else this.#ready(worker, message.lasting);
    return undefined;
  }

  #ready(worker: Worker, lasting: Lasting | undefined): void {
    worker.isReady = true;
    this.#lasting ??= lasting;
    if (this.#stop.signal.aborted) return;
    while (this.#kept.length < this.#count) this.#kept.push(this.#keep(this.#kept.length + 1));
    if (this.#serves) this.#log.info('a worker is ready', { worker: worker.number, pid: worker.child.pid });
    else if (this.#readyWorkers().length === this.#count) {
      this.#serves = true;
      this.#log.info(`${this.#count} workers are ready`);
    }
  }

  #readyWorkers(): Worker[] {
    return [...this.#workers.values()].filter(({ isReady }) => isReady);
  }

  async #gather(asking: Worker, topic: string): Promise<unknown[]> {
    const others = this.#readyWorkers().filter((other) => other !== asking);
    return Promise.all(others.map(({ line }) => line.ask({ kind: 'offer', topic }, ANSWER_TIMEOUT_MS)));
  }

  /**
   * Lets one worker try the new config, then the others. Each logs its own faults, and queues its reloads.
   * @returns whether the new config is in force.
   */
  async reload(): Promise<boolean> {
    // Workers that still start are asked, too: they may have read the old files, and reload once they serve.
    const first = [...this.#workers.values()].find(({ isEnding }) => !isEnding);
    if (first === undefined || this.#stop.signal.aborted || !(await this.#take(first, true))) return false;
    const others = [...this.#workers.values()].filter((other) => other !== first);
    const taken = await Promise.all(others.map((other) => this.#take(other, false)));
    this.#log.info('the new config is in force', { workers: 1 + taken.filter(Boolean).length });
    return true;
  }

  /** Asks a worker to reload. If it cannot, but the first one could, it is replaced: it would serve by the old config. */
  async #take({ line, child, number }: Worker, isFirst: boolean): Promise<boolean> {
    const isTaken = await line.ask({ kind: 'reload', isFirst }, RELOAD_TIMEOUT_MS);
    if (isTaken !== true && !isFirst) child.kill('SIGTERM');
    // One that refuses the config has said so.
    if (isTaken === undefined && isFirst && !this.#stop.signal.aborted)
      this.#log.error(UNTRIED, { worker: number, pid: child.pid });
    return isTaken === true;
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
