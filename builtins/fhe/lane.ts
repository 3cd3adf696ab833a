import type { Worker } from 'node:worker_threads';
import type { Job } from './job.ts';
import type { Order, Report } from './protocol.ts';

export interface LaneOptions {
  /** Starts a thread that takes orders. */
  readonly spawn: () => Worker;
  /** Milliseconds after which a worker is replaced, so that it picks up rotated keys. */
  readonly lifetime: number;
}

/** Milliseconds until the first replacement after a failure; twice as long after each further one in a row. */
const FIRST_REST = 250;
const LONGEST_REST = 30_000;

/** Milliseconds. */
const GRACE = 100;

let lastId = 0;

/**
 * One worker at a time, which has one job at a time. A worker is started when there is a job for it, and replaced after
 * anything that went wrong: it may be stuck, or its keys may be old.
 */
export class Lane {
  readonly #options: LaneOptions;
  readonly #onFree: () => void;
  readonly #endings = new Set<Promise<unknown>>();
  #worker: Worker | undefined;
  #bornAt = 0;
  #current: { readonly id: number; readonly job: Job; readonly startedAt: number; guard: NodeJS.Timeout } | undefined;
  #failures = 0;
  #rest: NodeJS.Timeout | undefined;
  #stopped = false;
  /** Milliseconds that the last successful job took. */
  lastDuration = 0;

  /** @param onFree called whenever the lane could take a job again. */
  constructor(options: LaneOptions, onFree: () => void) {
    this.#options = options;
    this.#onFree = onFree;
  }

  get isBusy(): boolean {
    return this.#current !== undefined;
  }

  get isFree(): boolean {
    return this.#current === undefined && this.#rest === undefined && !this.#stopped;
  }

  /** Only for a free lane. */
  run(job: Job): void {
    lastId += 1;
    // For a job that was let go and so has no deadline any more; later than the deadline of one that was not.
    const guard = setTimeout(() => this.#fail('the worker did not end in time'), job.remaining + GRACE);
    this.#current = { id: lastId, job, startedAt: performance.now(), guard };
    try {
      if (performance.now() - this.#bornAt > this.#options.lifetime) this.#discard();
      this.#worker ??= this.#start();
      this.#tell({ kind: 'encrypt', id: lastId, task: job.task, timeout: Math.max(Math.ceil(job.remaining), 1) });
    } catch (error) {
      this.#fail(`no worker could be started: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  /**
   * Nobody waits for the job any more. At its deadline the worker may be stuck. When the client left it keeps running: one
   * that comes and goes must not make it fetch the keys again and again. It is told to leave the relayer out of it.
   */
  letGo(job: Job): void {
    if (this.#current?.job !== job) return;
    if (job.isLate) this.#fail('the worker did not end in time');
    else this.#tell({ kind: 'cancel', id: this.#current.id });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#rest);
    this.#finish()?.fail('the service stops');
    this.#discard();
    await Promise.all(this.#endings);
  }

  #tell(order: Order): void {
    this.#worker?.postMessage(order);
  }

  #start(): Worker {
    const worker = this.#options.spawn();
    const isMine = () => worker === this.#worker;
    worker.on('message', (report: Report) => {
      if (isMine()) this.#take(report);
    });
    worker.on('error', (error: unknown) => {
      if (isMine()) this.#fail(`the worker crashed: ${error instanceof Error ? error.message : String(error)}`);
    });
    worker.on('exit', (code) => {
      if (isMine()) this.#fail(`the worker ended with code ${code}`);
    });
    this.#bornAt = performance.now();
    return worker;
  }

  #take(report: Report): void {
    if (report.id !== this.#current?.id) return;
    if (report.kind === 'failed') {
      this.#fail(report.reason);
      return;
    }
    const { startedAt } = this.#current;
    const job = this.#finish();
    if (report.kind === 'done') {
      this.#failures = 0;
      this.lastDuration = performance.now() - startedAt;
      job?.succeed(report.ciphertext);
    }
    this.#onFree();
  }

  #fail(reason: string): void {
    this.#discard();
    this.#failures += 1;
    const rest = Math.min(FIRST_REST * 2 ** (this.#failures - 1), LONGEST_REST);
    clearTimeout(this.#rest);
    this.#rest = setTimeout(() => {
      this.#rest = undefined;
      this.#onFree();
    }, rest);
    this.#finish()?.fail(reason);
  }

  #finish(): Job | undefined {
    const job = this.#current?.job;
    clearTimeout(this.#current?.guard);
    this.#current = undefined;
    return job;
  }

  #discard(): void {
    const worker = this.#worker;
    this.#worker = undefined;
    if (worker === undefined) return;
    const ending = worker.terminate().finally(() => this.#endings.delete(ending));
    this.#endings.add(ending);
  }
}
