import { once } from 'node:events';
import { type Release, Semaphore, SlotTimeout } from '../../lib/bounded/semaphore.ts';
import { EncryptionFailure, late, PoolWorker, type PoolWorkerOptions } from './pool-worker.ts';
import type { Ciphertext, Task } from './protocol.ts';

export interface PoolOptions extends PoolWorkerOptions {
  /** Most encryptions at the same time. */
  readonly workers: number;
  /** Most values that wait for a worker; further ones are refused at once. */
  readonly queue: number;
}

/** A few workers with a short queue in front of them. No process is started before the first value. */
export class Pool {
  readonly #options: PoolOptions;
  /** One slot for each worker, which is held also while the worker recovers from a failure. */
  readonly #slots: Semaphore;
  readonly #workers = new Set<PoolWorker>();
  readonly #idle: PoolWorker[] = [];
  readonly #stopping = new AbortController();
  /** Duration of the last successful encryption, in milliseconds. */
  #lastDuration = 0;
  /** Number of workers that encrypt a value. */
  busy = 0;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#slots = new Semaphore(options.workers);
  }

  /** Number of values that wait for a worker. */
  get waiting(): number {
    return this.#slots.waiting;
  }

  /**
   * Encrypts a value as soon as a worker is free.
   * @param signal removes the task from the queue when it aborts; a running task is abandoned.
   * @throws EncryptionFailure
   */
  async encrypt(task: Task, signal: AbortSignal): Promise<Ciphertext> {
    const left = once(signal, 'abort').then(() => undefined);
    const stopping = this.#stopping.signal;
    const ciphertext = await Promise.race([this.#attempt(task, signal), left]).catch((error: unknown) => {
      if (!signal.aborted && !stopping.aborted) throw error;
      return undefined;
    });
    if (ciphertext !== undefined) return ciphertext;
    throw new EncryptionFailure(stopping.aborted ? 'the service stops' : 'the client left');
  }

  /** Fails all waiting and running tasks, and ends the workers. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#workers].map((worker) => worker.end()));
  }

  /** Waits for a worker and encrypts. @returns undefined if no client waits for the ciphertext any more. */
  async #attempt(task: Task, signal: AbortSignal): Promise<Ciphertext | undefined> {
    const { timeout } = this.#options;
    const deadline = performance.now() + timeout;
    const release = this.#slots.tryAcquire() ?? (await this.#wait(signal));
    const started = performance.now();
    // A task that cannot end in time would block the worker for the next one.
    if (deadline - started < Math.min(this.#lastDuration, timeout / 2)) {
      release();
      throw new EncryptionFailure('it waited too long for a worker to be done in time');
    }
    const worker = this.#idle.pop() ?? this.#hire();
    const free = () => {
      this.#idle.push(worker);
      release();
    };
    this.busy += 1;
    try {
      const ciphertext = await worker.encrypt(task, deadline, signal);
      if (ciphertext !== undefined) this.#lastDuration = performance.now() - started;
      free();
      return ciphertext;
    } catch (error) {
      worker.recover().then(free);
      throw error;
    } finally {
      this.busy -= 1;
    }
  }

  async #wait(signal: AbortSignal): Promise<Release> {
    const { queue, timeout } = this.#options;
    if (this.waiting >= queue) throw new EncryptionFailure(`the queue is full (${this.waiting} waiting)`);
    return this.#slots.acquire(timeout, signal).catch((error: unknown) => {
      throw error instanceof SlotTimeout ? new EncryptionFailure(late(timeout)) : error;
    });
  }

  #hire(): PoolWorker {
    const worker = new PoolWorker(this.#options, this.#stopping.signal);
    this.#workers.add(worker);
    return worker;
  }
}
