import { EncryptionFailure, Job } from './job.ts';
import { PoolWorker, type PoolWorkerOptions } from './pool-worker.ts';
import type { Ciphertext, Task } from './protocol.ts';

export interface PoolOptions extends PoolWorkerOptions {
  /** Encryptions at the same time. */
  readonly workers: number;
  /** Most that wait for a worker; further ones are refused at once. */
  readonly queue: number;
  /** Milliseconds for an encryption, the wait for a worker included. */
  readonly timeout: number;
}

/** A few workers with a short queue in front of them. No process is started before the first job. */
export class Pool {
  readonly #options: PoolOptions;
  readonly #workers: readonly PoolWorker[];
  readonly #waiting = new Set<Job>();
  #stopped = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#workers = Array.from({ length: options.workers }, () => new PoolWorker(options, () => this.#dispatch()));
  }

  /** How many values wait for a worker. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** How many workers have a value to encrypt. */
  get busy(): number {
    return this.#workers.filter(({ isBusy }) => isBusy).length;
  }

  /**
   * @param signal takes the task out of the queue when it aborts; one that runs already is abandoned.
   * @throws EncryptionFailure
   */
  encrypt(task: Task, signal: AbortSignal): Promise<Ciphertext> {
    return new Promise((resolve, reject) => {
      if (this.#stopped) throw new EncryptionFailure('the service stops');
      if (signal.aborted) throw new EncryptionFailure('the client left');
      const isFull = this.#waiting.size >= this.#options.queue;
      if (isFull && !this.#workers.some(({ isFree }) => isFree)) {
        throw new EncryptionFailure(`the queue is full (${this.#waiting.size} waiting)`);
      }
      const job = new Job(task, this.#options.timeout, signal, (outcome) => {
        this.#waiting.delete(job);
        for (const worker of this.#workers) worker.abandon(job);
        if (outcome instanceof EncryptionFailure) reject(outcome);
        else resolve(outcome);
      });
      this.#waiting.add(job);
      this.#dispatch();
    });
  }

  /** Fails what waits and what runs, and ends the workers. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const job of this.#waiting) job.fail('the service stops');
    await Promise.all(this.#workers.map((worker) => worker.stop()));
  }

  #dispatch(): void {
    for (const worker of this.#workers) {
      if (!worker.isFree) continue;
      const job = this.#next(worker.lastDuration);
      if (job === undefined) return;
      worker.run(job);
    }
  }

  /**
   * The longest waiting job that can still be done in time. A job that cannot would have its worker replaced at its deadline,
   * and the next job would pay for that.
   */
  #next(duration: number): Job | undefined {
    const needed = Math.min(duration, this.#options.timeout / 2);
    for (const job of this.#waiting) {
      this.#waiting.delete(job);
      if (job.remaining >= needed) return job;
      job.fail('it waited too long for a worker to be done in time');
    }
    return undefined;
  }
}
