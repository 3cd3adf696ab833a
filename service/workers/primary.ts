import type { ChildProcess } from 'node:child_process';
import cluster from 'node:cluster';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { deferred } from '../../lib/time/deferred.ts';
import { LATE, withTimeout } from '../../lib/time/with-timeout.ts';
import type { ProcessLog } from '../log.ts';
import { ReloadQueue } from '../reload.ts';
import { complain } from '../terminal.ts';
import { Line } from './line.ts';
import { type FromPrimary, type FromWorker, IDENTITY, type Lasting } from './link.ts';

/** Milliseconds before the second attempt to replace a worker; each further one waits twice as long. */
const DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;
/** Milliseconds after which the next failure of a worker is its first again. */
const LONG_LIFE_MS = 30_000;
/** Milliseconds that a worker has to answer another. */
const ANSWER_TIMEOUT_MS = 2000;
/** Milliseconds that a worker has to load and start a config. */
const RELOAD_TIMEOUT_MS = 120_000;
/** Milliseconds that what a process wrote has to arrive once it has ended. */
const LAST_OUTPUT_TIMEOUT_MS = 1000;

export interface PrimaryOptions {
  readonly count: number;
  readonly log: ProcessLog;
  readonly colour: boolean;
  /** What workers get besides the environment of this process. */
  readonly variables: Readonly<Record<string, string>>;
  /** Called when all workers are ready, once. */
  served(): void;
  /** Called when the workers have a new config. */
  reloaded(): Promise<unknown>;
}

interface Worker {
  readonly number: number;
  readonly child: ChildProcess;
  readonly line: Line<FromWorker, FromPrimary>;
  readySince?: number;
  isEnding?: boolean;
}

/** The primary process: starts workers, replaces those that end, and has them reload and stop. It serves nothing. */
export class Primary {
  readonly #options: PrimaryOptions;
  readonly #log: ProcessLog;
  /** By their numbers. */
  readonly #workers = new Map<number, Worker>();
  /** Set when a worker has ended before all were ready: why, where it has not said so itself. */
  readonly #failed = deferred<{ readonly why?: string }>();
  readonly #reloads = new ReloadQueue<void>();
  /** What has one worker after the other at each number. */
  readonly #kept: Promise<void>[] = [];
  readonly #stop = new AbortController();
  #lasting: Lasting | undefined;
  #serves = false;
  #restarts = 0;
  #isClean = true;

  constructor(options: PrimaryOptions) {
    this.#options = options;
    this.#log = options.log;
  }

  /** Resolves with the exit code once a signal has come and all workers have ended, or when they could not start. */
  async run(signalled: Promise<string>): Promise<number> {
    // Workers accept by themselves: what was handed to one that is killed would be lost.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    cluster.setupPrimary({ stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
    // The others would fail for the same reasons as the first one, and come after it.
    this.#kept.push(this.#keep(1));
    const end = await Promise.race([signalled, this.#failed.promise]);
    this.#stop.abort();
    if (typeof end === 'string') this.#log.info('stopping', { signal: end });
    else if (end.why !== undefined) await complain('error', [end.why]);
    for (const { child } of this.#workers.values()) child.kill('SIGTERM');
    await Promise.all(this.#kept);
    if (typeof end !== 'string') return 1;
    this.#log.info('stopped');
    return this.#isClean ? 0 : 1;
  }

  /** Calls that come while a reload waits to begin share it. */
  reload(): void {
    void this.#reloads.run(() => this.#reload());
  }

  /** Has one worker after the other at a number, until the stop. */
  async #keep(number: number): Promise<void> {
    const { signal } = this.#stop;
    let failures = 0;
    while (!signal.aborted) {
      const worker = this.#fork(number);
      const how = await endOf(worker.child);
      this.#workers.delete(number);
      const { readySince, child } = worker;
      if (signal.aborted) {
        this.#isClean &&= readySince === undefined || child.exitCode === 0;
        return;
      }
      // With this code it has said on stderr what keeps it from starting.
      if (!this.#serves)
        return this.#failed.resolve(child.exitCode === 1 ? {} : { why: `a worker ${how} before all were ready` });
      this.#restarts += 1;
      if (readySince !== undefined && performance.now() - readySince >= LONG_LIFE_MS) failures = 0;
      const wait = failures === 0 ? 0 : Math.min(DELAY_MS * 2 ** (failures - 1), LONGEST_DELAY_MS);
      const what = readySince === undefined ? 'a worker cannot start' : `a worker ${how}`;
      this.#log.error(`${what}: it is replaced in ${wait} ms`, { worker: number, pid: child.pid });
      failures += 1;
      await sleep(wait, undefined, { signal }).catch(() => undefined);
    }
  }

  #fork(number: number): Worker {
    const { count, colour, variables } = this.#options;
    const announces = number === 1 && !this.#serves;
    const identity = { number, count, announces, colour, restarts: this.#restarts, lasting: this.#lasting };
    const made = cluster.fork({ ...variables, [IDENTITY]: JSON.stringify(identity) });
    // What matters of it comes from the process, too.
    made.on('error', () => undefined);
    const child = made.process;
    if (child.stdout) createInterface(child.stdout).on('line', (text) => this.#log.pass(`${text}\n`));
    const worker: Worker = { number, child, line: new Line(child, (message) => this.#hear(worker, message)) };
    this.#workers.set(number, worker);
    return worker;
  }

  #hear(worker: Worker, message: FromWorker): unknown {
    if (message.kind === 'gather') return this.#gather(worker, message.topic);
    if (message.kind === 'ending') worker.isEnding = true;
    else this.#ready(worker, message.lasting);
    return undefined;
  }

  #ready(worker: Worker, lasting: Lasting): void {
    const { count, served } = this.#options;
    worker.readySince = performance.now();
    this.#lasting ??= lasting;
    if (this.#stop.signal.aborted) return;
    while (this.#kept.length < count) this.#kept.push(this.#keep(this.#kept.length + 1));
    if (this.#serves) {
      this.#log.info('a worker is ready', { worker: worker.number, pid: worker.child.pid });
    } else if (this.#readyWorkers().length === count) {
      this.#serves = true;
      this.#log.info(`${count} workers are ready`);
      served();
    }
  }

  #readyWorkers(): Worker[] {
    const ready = [...this.#workers.values()].filter(({ readySince }) => readySince !== undefined);
    return ready.sort((a, b) => a.number - b.number);
  }

  async #gather(asking: Worker, topic: string): Promise<unknown[]> {
    const others = this.#readyWorkers().filter((other) => other !== asking);
    const answers = others.map(async ({ line, number }) => {
      const answer = await line.ask({ kind: 'offer', topic }, ANSWER_TIMEOUT_MS);
      if (answer !== LATE) return answer;
      this.#log.warn('a worker did not answer another in time', { worker: number, topic });
      return undefined;
    });
    return Promise.all(answers);
  }

  /** One worker tries the new config, then the others do; each says itself what keeps it from that. */
  async #reload(): Promise<void> {
    // Those that start may have read the files before: they reload once they serve.
    const workers = () => new Set([...this.#readyWorkers(), ...this.#workers.values()]);
    const first = [...workers()].find(({ isEnding }) => !isEnding);
    if (first === undefined || this.#stop.signal.aborted || !(await this.#take(first, true))) return;
    const others = [...workers()].filter((other) => other !== first);
    const taken = await Promise.all(others.map((other) => this.#take(other, false)));
    await this.#options.reloaded();
    this.#log.info('the new config is in force', { workers: 1 + taken.filter(Boolean).length });
  }

  /** One that cannot take a config that another has tried is replaced: it would serve by the one before. */
  async #take({ line, child }: Worker, isFirst: boolean): Promise<boolean> {
    const isTaken = (await line.ask({ kind: 'reload', announces: isFirst }, RELOAD_TIMEOUT_MS)) === true;
    if (!isTaken && !isFirst) child.kill('SIGTERM');
    return isTaken;
  }
}

/** @returns how a process ended, once what it wrote is read. */
async function endOf(child: ChildProcess): Promise<string> {
  const closed = once(child, 'close').catch(() => undefined);
  const how = await once(child, 'exit').then(
    ([code, signal]) => (signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`),
    ({ message }) => `could not be made (${message})`,
  );
  await withTimeout(LAST_OUTPUT_TIMEOUT_MS, closed);
  return how;
}
