import type { OwnedProcess } from '../../lib/process/child-process.ts';
import type { Job } from './job.ts';
import type { Order, Report } from './protocol.ts';
import { tell } from './spawn.ts';

export interface PoolWorkerOptions {
  /** Starts a process that takes orders. */
  readonly spawn: () => OwnedProcess;
  /** Milliseconds after which a process is replaced, so that it picks up rotated keys. */
  readonly lifetime: number;
}

/** Milliseconds until the first replacement after a failure; the time doubles with each further failure in a row. */
const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 30_000;

/** Milliseconds after a job's deadline until its process counts as stuck. */
const OVERTIME_MS = 100;

let lastId = 0;

/**
 * Runs one job at a time in a process, which it starts when there is a job and replaces after any failure. It may be stuck,
 * or its keys may be old.
 */
export class PoolWorker {
  readonly #options: PoolWorkerOptions;
  readonly #onFree: () => void;
  readonly #endings = new Set<Promise<unknown>>();
  #process: OwnedProcess | undefined;
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
    // An abandoned job no longer ends at its deadline, but its process must; for other jobs the deadline comes first.
    const guard = setTimeout(() => this.#fail('the worker did not end in time'), job.remaining + OVERTIME_MS);
    this.#current = { id: lastId, job, startedAt: performance.now(), guard };
    try {
      if (performance.now() - this.#bornAt > this.#options.lifetime) this.#discard();
      this.#process ??= this.#start();
      this.#tell({ kind: 'encrypt', id: lastId, task: job.task, timeout: Math.max(Math.ceil(job.remaining), 1) });
    } catch (error) {
      this.#fail(`no worker could be started: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  /**
   * Nobody waits for the job any more. After its deadline the process may be stuck, and is replaced. After a client's
   * disconnect it stays, because clients that come and go must not make it fetch the keys again and again. It only skips the
   * relayer.
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
    if (this.#process) tell(this.#process, order);
  }

  #start(): OwnedProcess {
    const started = this.#options.spawn();
    const { child, ended } = started;
    const isMine = () => started === this.#process;
    child.on('message', (report: Report) => {
      if (isMine()) this.#take(report);
    });
    this.#endings.add(ended);
    ended.then((how) => {
      this.#endings.delete(ended);
      if (isMine()) this.#fail(`the worker ${how}`);
    });
    this.#bornAt = performance.now();
    return started;
  }

  #take(report: Report): void {
    if (report.kind === 'crashed') {
      this.#fail(`the worker crashed: ${report.reason}`);
      return;
    }
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
    const backoff = Math.min(FIRST_BACKOFF_MS * 2 ** (this.#failures - 1), LONGEST_BACKOFF_MS);
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
    this.#process?.kill();
    this.#process = undefined;
  }
}
