import cluster from 'node:cluster';
import type { ProcessLog } from '../log.ts';
import { ReloadQueue } from '../reload-queue.ts';
import { complain } from '../terminal.ts';
import { JointReload } from './joint-reload.ts';
import { type FromWorker, isListener, NOT_RELOADED } from './messages.ts';
import { differenceOf } from './worker-link.ts';
import { type Ending, howOf, WorkerProcess } from './worker-process.ts';
import { WorkerQueries } from './worker-queries.ts';
import { WorkerSlot } from './worker-slot.ts';

/** Milliseconds for a signal that goes to all processes to arrive here, too. */
const SAME_SIGNAL_MS = 100;

export interface SupervisorOptions {
  readonly count: number;
  readonly log: ProcessLog;
  readonly colour: boolean;
  /** What workers get besides the environment of this process. */
  readonly variables: Readonly<Record<string, string>>;
  /** Called when all workers have a new config. */
  reloaded(): Promise<unknown>;
}

/** The primary process: starts workers, replaces those that end, and has them reload and stop together. It serves nothing. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #log: ProcessLog;
  readonly #slots = new Map<number, WorkerSlot>();
  readonly #alive = new Set<WorkerProcess>();
  readonly #queries: WorkerQueries;
  readonly #joint = new JointReload();
  readonly #failed: Promise<readonly string[]>;
  #fail: (lines: readonly string[]) => void = () => undefined;
  /** Resolves once all workers were ready. */
  readonly served: Promise<void>;
  #serve: () => void = () => undefined;
  #serves = false;
  /** What all listen with; this process keeps it, so that clients wait while no worker is there. */
  #listener: { close(): void } | undefined;
  #binds: WorkerProcess | undefined;
  /** Fingerprint of the config in force. */
  #config: string | undefined;
  #restarts = 0;
  #reloads = 0;
  readonly #reloading = new ReloadQueue<void>(undefined);
  #isStopping = false;
  #code = 0;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#log = options.log;
    this.#queries = new WorkerQueries(options.log);
    this.#failed = new Promise((resolve) => {
      this.#fail = resolve;
    });
    this.served = new Promise((resolve) => {
      this.#serve = resolve;
    });
  }

  /** Resolves with the exit code once a signal has come and all workers have ended, or when they could not start. */
  async run(signalled: Promise<string>): Promise<number> {
    // Workers accept by themselves: what was handed to one that is killed would be lost.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    cluster.setupPrimary({ stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
    for (let number = 1; number <= this.#options.count; number++) this.#start(number);
    const end = await Promise.race([signalled, this.#failed]);
    if (typeof end !== 'string') {
      await complain('error', end);
      await this.#stop('SIGTERM');
      return 1;
    }
    this.#log.info('stopping', { signal: end });
    await this.#stop(end);
    this.#log.info('stopped');
    return this.#code;
  }

  /** Calls that come while a reload waits to begin share it. */
  reload(): void {
    void this.#reloading.run(() => this.#reload());
  }

  #start(number: number): void {
    const { count, colour, variables } = this.#options;
    const slot = this.#slots.get(number) ?? new WorkerSlot();
    this.#slots.set(number, slot);
    slot.cancelRetry();
    const identity = { number, announces: number === 1 && !this.#serves, colour, count };
    const worker = new WorkerProcess(identity, this.#reloads, variables, this.#log, (...heard) => this.#hear(...heard));
    slot.worker = worker;
    this.#alive.add(worker);
    void worker.ended.then((ending) => this.#ended(worker, slot, ending));
  }

  #hear(worker: WorkerProcess, message: FromWorker, handle: unknown): void {
    // A reload decides which config one must have that has just started.
    if (message.kind === 'started') void this.#reloading.last.then(() => this.#admit(worker, message.config));
    else if (message.kind === 'ready') this.#ready(worker, message.stopTime, handle);
    else if (message.kind === 'failed') worker.fault = message.lines;
    else if (message.kind === 'committed') worker.stopTime = message.stopTime;
    else if (message.kind === 'leaving') setTimeout(() => this.#leave(worker, message.signal), SAME_SIGNAL_MS);
    else if (message.kind === 'gather') void this.#gather(worker, message.id, message.topic);
    else if (message.kind === 'answer') this.#queries.answered(worker, message.id, message.value);
    else this.#joint.answered(worker, message);
  }

  /** Lets a worker listen whose config is that of the others. */
  #admit(worker: WorkerProcess, config: string): void {
    if (worker.isStopping) return;
    const isLast = this.#serves && [...this.#alive].every(({ isMember }) => !isMember);
    if (isLast && config !== this.#config)
      this.#log.warn('no worker is left with the config that was in force: it is now what the files say');
    if (isLast || this.#config === undefined) this.#config = config;
    if (config !== this.#config) {
      worker.fault = [differenceOf(config, this.#config)];
      worker.kill();
      return;
    }
    worker.isMember = true;
    if (this.#listener !== undefined) worker.send({ kind: 'listen' }, this.#listener);
    else if (this.#binds === undefined) {
      this.#binds = worker;
      worker.send({ kind: 'listen' });
    }
  }

  #ready(worker: WorkerProcess, stopTime: number, handle: unknown): void {
    worker.isReady = true;
    worker.readySince = performance.now();
    worker.stopTime = stopTime;
    if (this.#listener === undefined && isListener(handle)) {
      this.#listener = handle;
      if (this.#isStopping) handle.close();
      for (const other of this.#alive) if (other.isMember && !other.isReady) other.send({ kind: 'listen' }, handle);
    }
    if (this.#serves) {
      this.#log.info('a worker is ready', { worker: worker.number, pid: worker.pid });
    } else {
      if ([...this.#slots.values()].some((slot) => slot.worker?.isReady !== true)) return;
      this.#serves = true;
      this.#log.info(`${this.#options.count} workers are ready`);
      this.#serve();
    }
    this.#tellAll();
  }

  #restarted(): void {
    this.#restarts += 1;
    this.#tellAll();
  }

  #tellAll(): void {
    for (const worker of this.#alive) worker.send({ kind: 'serve', restarts: this.#restarts });
  }

  /** A worker was told to stop by somebody else, who may have told all. */
  #leave(worker: WorkerProcess, signal: string): void {
    if (this.#isStopping || !this.#alive.has(worker)) return;
    worker.stop(signal, true);
    const slot = this.#slots.get(worker.number);
    if (!this.#serves || slot?.worker !== worker) return;
    this.#log.info('a worker leaves: it is replaced', { worker: worker.number, pid: worker.pid, signal });
    this.#restarted();
    this.#start(worker.number);
  }

  async #gather(worker: WorkerProcess, id: number, topic: string): Promise<void> {
    const others = [...this.#alive].filter((other) => other !== worker && other.isReady);
    worker.send({ kind: 'gathered', id, values: await this.#queries.gather(topic, others) });
  }

  #ended(worker: WorkerProcess, slot: WorkerSlot, ending: Ending): void {
    this.#alive.delete(worker);
    this.#queries.left(worker);
    this.#joint.left(worker);
    if (this.#binds === worker) this.#binds = undefined;
    const isClean = ending.code === 0 || !worker.isReady;
    if (this.#isStopping && !isClean) this.#code = 1;
    if (this.#isStopping || slot.worker !== worker) return;
    if (this.#serves) this.#replace(worker, slot, ending);
    else this.#fail(worker.fault ?? [`a worker ${howOf(ending)} before all were ready`]);
  }

  #replace(worker: WorkerProcess, slot: WorkerSlot, ending: Ending): void {
    // It began with a config that a reload has replaced since.
    const isOutdated = worker.fault !== undefined && worker.reloads !== this.#reloads;
    const wait = slot.fail(worker, isOutdated);
    if (!isOutdated) {
      const { number, pid } = worker;
      for (const line of worker.fault ?? []) this.#log.error(line, { worker: number });
      const what = worker.isReady ? `a worker ${howOf(ending)}` : 'a worker cannot start';
      this.#log.error(`${what}: it is replaced in ${wait} ms`, { worker: number, pid });
    }
    this.#restarted();
    slot.retryIn(wait, () => this.#start(worker.number));
  }

  async #reload(): Promise<void> {
    const workers = [...this.#alive].filter(({ isMember, isStopping }) => isMember && !isStopping);
    if (this.#isStopping) return;
    const outcome = await this.#joint.run(workers.sort((a, b) => a.number - b.number));
    if (this.#isStopping) return;
    if (typeof outcome !== 'string') {
      const worker = outcome.worker.number;
      for (const line of outcome.lines) this.#log.error(line, { worker });
      this.#log.error(NOT_RELOADED);
      return;
    }
    this.#reloads += 1;
    // Where no worker is left to check a config, the next one that starts decides.
    this.#config = outcome === '' ? undefined : outcome;
    for (const [number, slot] of this.#slots) {
      slot.forgive();
      if (slot.isRetrying) this.#start(number);
    }
    await this.#options.reloaded();
    if (outcome !== '') this.#log.info('the new config is in force', { workers: workers.length });
  }

  async #stop(signal: string): Promise<void> {
    this.#isStopping = true;
    // The queue of connections ends with the last worker that accepts from it.
    this.#listener?.close();
    for (const slot of this.#slots.values()) slot.cancelRetry();
    const ends = [...this.#alive].map((worker) => {
      worker.stop(signal, false);
      return worker.ended;
    });
    await Promise.all(ends);
  }
}
