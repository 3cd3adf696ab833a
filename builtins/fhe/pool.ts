import { EncryptionFailure, Job } from './job.ts';
import { Lane, type LaneOptions } from './lane.ts';
import type { Ciphertext, Task } from './protocol.ts';

export interface PoolOptions extends LaneOptions {
  /** Encryptions at the same time. */
  readonly workers: number;
  /** Most that wait for a worker; further ones are refused at once. */
  readonly queue: number;
  /** Milliseconds for an encryption, the wait for a worker included. */
  readonly timeout: number;
}

/** A few workers, and a short queue in front of them. Nothing runs before the first job. */
export class Pool {
  readonly #options: PoolOptions;
  readonly #lanes: readonly Lane[];
  readonly #waiting = new Set<Job>();
  #stopped = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#lanes = Array.from({ length: options.workers }, () => new Lane(options, () => this.#dispatch()));
  }

  /** How many values wait for a worker. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** How many workers have a value to encrypt. */
  get busy(): number {
    return this.#lanes.filter(({ isBusy }) => isBusy).length;
  }

  /**
   * @param signal takes the task out of the queue when it aborts; one that runs already is let go.
   * @throws EncryptionFailure
   */
  encrypt(task: Task, signal: AbortSignal): Promise<Ciphertext> {
    return new Promise((resolve, reject) => {
      if (this.#stopped) throw new EncryptionFailure('the service stops');
      if (signal.aborted) throw new EncryptionFailure('the client left');
      const isFull = this.#waiting.size >= this.#options.queue;
      if (isFull && !this.#lanes.some(({ isFree }) => isFree)) {
        throw new EncryptionFailure(`the queue is full (${this.#waiting.size} waiting)`);
      }
      const job = new Job(task, this.#options.timeout, signal, (outcome) => {
        this.#waiting.delete(job);
        for (const lane of this.#lanes) lane.letGo(job);
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
    await Promise.all(this.#lanes.map((lane) => lane.stop()));
  }

  #dispatch(): void {
    for (const lane of this.#lanes) {
      if (!lane.isFree) continue;
      const job = this.#next(lane.lastDuration);
      if (job === undefined) return;
      lane.run(job);
    }
  }

  /**
   * The longest waiting job that can still be done in time. One that cannot would take a worker down at its deadline, and
   * with it the time of the next.
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
