import cluster from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';
import { deferred } from '../../lib/time/deferred.ts';
import { LATE } from '../../lib/time/with-timeout.ts';
import type { ProcessLog } from '../log.ts';
import { ReloadQueue } from '../reload-queue.ts';
import { complain } from '../terminal.ts';
import { type FromWorker, NOT_RELOADED, type Preparation } from './messages.ts';
import { differenceOf } from './worker-link.ts';
import { WorkerProcess } from './worker-process.ts';

/** Milliseconds for a signal that goes to all processes to arrive here, too. */
const SAME_SIGNAL_MS = 100;
/** Milliseconds before the second attempt to replace a worker; each further one waits twice as long. */
const DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;
/** Milliseconds after which the next failure of a worker is its first again. */
const LONG_LIFE_MS = 30_000;
/** Milliseconds that a worker has to answer another. */
const ANSWER_TIMEOUT_MS = 2000;

export interface SupervisorOptions {
  readonly count: number;
  readonly log: ProcessLog;
  readonly colour: boolean;
  /** What workers get besides the environment of this process. */
  readonly variables: Readonly<Record<string, string>>;
  /** Called when all workers are ready, once. */
  served(): void;
  /** Called when all workers have a new config. */
  reloaded(): Promise<unknown>;
}

/** The primary process: starts workers, replaces those that end, and has them reload and stop together. It serves nothing. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #log: ProcessLog;
  readonly #workers = new Set<WorkerProcess>();
  /** Why the workers could not start. */
  readonly #failed = deferred<readonly string[]>();
  /** What all listen with; this process keeps it, so that clients wait while no worker is there. */
  #listener: { close(): void } | undefined;
  /** Fingerprint of the config in force. */
  #config: string | undefined;
  #serves = false;
  #restarts = 0;
  readonly #reloads = new ReloadQueue<void>(undefined);
  /** Of workers that could not start; a reload ends them. */
  readonly #waits = new Set<AbortController>();
  #isStopping = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#log = options.log;
  }

  /** Resolves with the exit code once a signal has come and all workers have ended, or when they could not start. */
  async run(signalled: Promise<string>): Promise<number> {
    // Workers accept by themselves: what was handed to one that is killed would be lost.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    cluster.setupPrimary({ stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
    void this.#keep(1);
    const end = await Promise.race([signalled, this.#failed.promise]);
    if (typeof end !== 'string') {
      await complain('error', end);
      await this.#stop('SIGTERM');
      return 1;
    }
    this.#log.info('stopping', { signal: end });
    const isClean = await this.#stop(end);
    this.#log.info('stopped');
    return isClean ? 0 : 1;
  }

  /** Calls that come while a reload waits to begin share it. */
  reload(): void {
    void this.#reloads.run(() => this.#reload());
  }

  /** Has one worker after the other at a number, until the stop. */
  async #keep(number: number): Promise<void> {
    let failures = 0;
    for (;;) {
      await this.#reloads.last;
      if (this.#isStopping) return;
      const worker = this.#fork(number);
      const how = await Promise.race([worker.ended, worker.left]);
      if (this.#isStopping) return;
      if (!this.#serves) return this.#failed.resolve(worker.fault ?? [`a worker ${how} before all were ready`]);
      this.#restarts += 1;
      this.#tellAll();
      if (worker.isStopping || worker.isOutdated) continue;
      if (performance.now() - (worker.readySince ?? Number.POSITIVE_INFINITY) >= LONG_LIFE_MS) failures = 0;
      const wait = failures === 0 ? 0 : Math.min(DELAY_MS * 2 ** (failures - 1), LONGEST_DELAY_MS);
      for (const line of worker.fault ?? []) this.#log.error(line, { worker: number });
      const what = worker.readySince === undefined ? 'a worker cannot start' : `a worker ${how}`;
      this.#log.error(`${what}: it is replaced in ${wait} ms`, { worker: number, pid: worker.pid });
      const waiting = new AbortController();
      this.#waits.add(waiting);
      failures = await sleep(wait, failures + 1, waiting).catch(() => 0);
      this.#waits.delete(waiting);
    }
  }

  #fork(number: number): WorkerProcess {
    const { count, colour, variables } = this.#options;
    const announces = number === 1 && !this.#serves;
    const worker = new WorkerProcess({ number, announces, colour, count }, variables, {
      message: (...heard) => this.#hear(...heard),
      line: (text) => this.#log.pass(text),
    });
    this.#workers.add(worker);
    void worker.ended.then(() => this.#workers.delete(worker));
    return worker;
  }

  #hear(worker: WorkerProcess, message: FromWorker, handle: unknown): unknown {
    if (message.kind === 'started') return this.#admit(worker, message.config);
    if (message.kind === 'ready') return this.#ready(worker, handle);
    if (message.kind === 'leaving') return this.#leave(worker, message.signal);
    if (message.kind === 'gather') return this.#gather(worker, message.topic);
    worker.fault = message.lines;
    return undefined;
  }

  /** Lets a worker listen whose config is that of the others. */
  #admit(worker: WorkerProcess, config: string): void {
    if (worker.isStopping || worker.isOutdated) return;
    const isAlone = [...this.#workers].every((other) => other.config === undefined);
    if (isAlone && this.#config !== undefined && config !== this.#config)
      this.#log.warn('no worker is left with the config that was in force: it is now what the files say');
    if (isAlone || this.#config === undefined) this.#config = config;
    if (config !== this.#config) {
      worker.kill(differenceOf(config, this.#config));
      return;
    }
    worker.config = config;
    void worker.line.tell({ kind: 'listen' }, this.#listener);
  }

  #ready(worker: WorkerProcess, handle: unknown): void {
    worker.readySince = performance.now();
    if (this.#listener === undefined && isListener(handle)) {
      this.#listener = handle;
      // The others have where to listen now, and would fail for the same reasons.
      for (let number = 2; number <= this.#options.count; number++) void this.#keep(number);
    }
    if (this.#serves) this.#log.info('a worker is ready', { worker: worker.number, pid: worker.pid });
    else if (this.#readyWorkers().length < this.#options.count) return;
    else {
      this.#serves = true;
      this.#log.info(`${this.#options.count} workers are ready`);
      this.#options.served();
    }
    this.#tellAll();
  }

  #tellAll(): void {
    for (const { line } of this.#workers) void line.tell({ kind: 'serve', restarts: this.#restarts });
  }

  #readyWorkers(): WorkerProcess[] {
    const ready = [...this.#workers].filter(({ readySince, isStopping }) => readySince !== undefined && !isStopping);
    return ready.sort((a, b) => a.number - b.number);
  }

  /** A worker was told to stop by somebody else, who may have told all. */
  async #leave(worker: WorkerProcess, signal: string): Promise<void> {
    await sleep(SAME_SIGNAL_MS);
    if (this.#isStopping || worker.isStopping) return;
    const { number, pid } = worker;
    if (this.#serves) this.#log.info('a worker leaves: it is replaced', { worker: number, pid, signal });
    worker.stop(signal, true);
  }

  async #gather(asking: WorkerProcess, topic: string): Promise<unknown[]> {
    const others = [...this.#workers].filter((other) => other !== asking && other.readySince !== undefined);
    const answers = others.map(async ({ line, number }) => {
      const answer = await line.ask({ kind: 'offer', topic }, ANSWER_TIMEOUT_MS);
      if (answer !== LATE) return answer;
      this.#log.warn('a worker did not answer another in time', { worker: number, topic });
      return undefined;
    });
    return Promise.all(answers);
  }

  async #reload(): Promise<void> {
    if (this.#isStopping) return;
    const ready = this.#readyWorkers();
    // One that starts just now may have read the files before.
    for (const worker of this.#workers) {
      if (worker.readySince !== undefined) continue;
      worker.isOutdated = true;
      worker.kill();
    }
    const { config, lines, worker } = await prepareAll(ready);
    for (const { line } of ready) void line.tell({ kind: lines === undefined ? 'commit' : 'abort' });
    if (this.#isStopping) return;
    for (const line of lines ?? []) this.#log.error(line, { worker });
    if (lines !== undefined) return this.#log.error(NOT_RELOADED);
    // Where no worker is left to check a config, the next one that starts decides.
    this.#config = config;
    for (const wait of this.#waits) wait.abort();
    await this.#options.reloaded();
    if (config !== undefined) this.#log.info('the new config is in force', { workers: ready.length });
  }

  /** @returns whether all that served ended as they should. */
  async #stop(signal: string): Promise<boolean> {
    this.#isStopping = true;
    // The queue of connections ends with the last worker that accepts from it.
    this.#listener?.close();
    const workers = [...this.#workers];
    for (const worker of workers) worker.stop(signal, false);
    await Promise.all(workers.map(({ ended }) => ended));
    return workers.every(({ isClean }) => isClean);
  }
}

/** One tries the new config, then the others do. @returns the first refusal and whose it is, or what all have prepared. */
async function prepareAll([first, ...others]: readonly WorkerProcess[]): Promise<
  Partial<Preparation> & { readonly worker?: number }
> {
  if (first === undefined) return {};
  const tried = { ...(await first.prepare(true)), worker: first.number };
  if (tried.lines !== undefined) return tried;
  const rest = await Promise.all(
    others.map(async (other) => ({ ...(await other.prepare(false)), worker: other.number })),
  );
  const refused = rest.find(({ lines }) => lines !== undefined);
  const odd = rest.find(({ config }) => config !== tried.config);
  if (refused !== undefined || odd === undefined) return refused ?? tried;
  return { worker: odd.worker, lines: ['the config changed while the workers read it'] };
}

/** Whether a handle that came with a message is one to listen with. */
function isListener(handle: unknown): handle is { close(): void } {
  return typeof handle === 'object' && handle !== null && 'close' in handle && typeof handle.close === 'function';
}
