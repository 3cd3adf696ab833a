import type { Worker } from 'node:worker_threads';
import type { Job } from './job.ts';
import type { Order, Report } from './protocol.ts';

export interface PoolWorkerOptions {
  /** Starts a thread that takes orders. */
  readonly spawn: () => Worker;
  /** Milliseconds after which a thread is replaced, so that it picks up rotated keys. */
  readonly lifetime: number;
}

/** Milliseconds until the first replacement after a failure; the time doubles with each further failure in a row. */
const FIRST_BACKOFF = 250;
const LONGEST_BACKOFF = 30_000;

/** Milliseconds after a job's deadline until its thread counts as stuck. */
const GRACE = 100;

let lastId = 0;

/**
 * Runs one job at a time in a thread, which it starts when there is a job and replaces after any failure: the thread may be
 * stuck, or its keys may be old.
 */
export class PoolWorker {
  readonly #options: PoolWorkerOptions;
  readonly #onFree: () => void;
  readonly #endings = new Set<Promise<unknown>>();
  #thread: Worker | undefined;
  #bornAt = 0;
  #current: { readonly id: number; readonly job: Job; readonly startedAt: number; guard: NodeJS.Timeout } | undefined;
  #failures = 0;
  #backoff: NodeJS.Timeout | undefined;
  #stopped = false;
  /** Milliseconds that the last successful job took. */
  lastDuration = 0;

  /** @param onFree called whenever it could take a job again. */
  constructor(options: PoolWorkerOptions, onFree: () => void) {
    this.#options = options;
    this.#onFree = onFree;
  }

  get isBusy(): boolean {
    return this.#current !== undefined;
  }

  get isFree(): boolean {
    return this.#current === undefined && this.#backoff === undefined && !this.#stopped;
  }

  /** To be called only while it is free. */
  run(job: Job): void {
    lastId += 1;
    // An abandoned job no longer ends at its deadline, but its thread must; for other jobs the deadline comes first.
    const guard = setTimeout(() => this.#fail('the worker did not end in time'), job.remaining + GRACE);
    this.#current = { id: lastId, job, startedAt: performance.now(), guard };
    try {
      if (performance.now() - this.#bornAt > this.#options.lifetime) this.#discard();
      this.#thread ??= this.#start();
      this.#tell({ kind: 'encrypt', id: lastId, task: job.task, timeout: Math.max(Math.ceil(job.remaining), 1) });
    } catch (error) {
      this.#fail(`no worker could be started: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  /**
   * Nobody waits for the job any more. After its deadline the thread may be stuck, and is replaced. After a client's disconnect
   * it stays, because clients that come and go must not make it fetch the keys again and again; it only skips the relayer.
   */
  abandon(job: Job): void {
    if (this.#current?.job !== job) return;
    if (job.isLate) this.#fail('the worker did not end in time');
    else this.#tell({ kind: 'cancel', id: this.#current.id });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#backoff);
    this.#finish()?.fail('the service stops');
    this.#discard();
    await Promise.all(this.#endings);
  }

  #tell(order: Order): void {
    this.#thread?.postMessage(order);
  }

  #start(): Worker {
    const thread = this.#options.spawn();
    const isMine = () => thread === this.#thread;
    thread.on('message', (report: Report) => {
      if (isMine()) this.#take(report);
    });
    thread.on('error', (error: unknown) => {
      if (isMine()) this.#fail(`the worker crashed: ${error instanceof Error ? error.message : String(error)}`);
    });
    thread.on('exit', (code) => {
      if (isMine()) this.#fail(`the worker ended with code ${code}`);
    });
    this.#bornAt = performance.now();
    return thread;
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
    const backoff = Math.min(FIRST_BACKOFF * 2 ** (this.#failures - 1), LONGEST_BACKOFF);
    clearTimeout(this.#backoff);
    this.#backoff = setTimeout(() => {
      this.#backoff = undefined;
      this.#onFree();
    }, backoff);
    this.#finish()?.fail(reason);
  }

  #finish(): Job | undefined {
    const job = this.#current?.job;
    clearTimeout(this.#current?.guard);
    this.#current = undefined;
    return job;
  }

  #discard(): void {
    const thread = this.#thread;
    this.#thread = undefined;
    if (thread === undefined) return;
    const ending = thread.terminate().finally(() => this.#endings.delete(ending));
    this.#endings.add(ending);
  }
}
