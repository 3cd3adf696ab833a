import { once, setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Release, Semaphore } from '../../lib/bounded/semaphore.ts';
import type { OwnedProcess } from '../../lib/process/child-process.ts';
import { errorText } from '../../lib/text.ts';
import { LATE, withTimeout } from '../../lib/time.ts';
import type { Ciphertext, Report, Task } from './protocol.ts';
import { tell } from './spawn.ts';

export interface PoolOptions {
  /** Starts a worker process. */
  readonly spawn: () => OwnedProcess;
  /** Milliseconds after which a process is replaced, so that it picks up rotated keys. */
  readonly lifetime: number;
  /** Timeout of an encryption in milliseconds, the wait for a worker included. */
  readonly timeout: number;
  /** Most encryptions at the same time. */
  readonly workers: number;
  /** Most values that wait for a worker; further ones are refused at once. */
  readonly queue: number;
}

/** An encryption failed. The message is for the log only. */
class EncryptionFailure extends Error {
  override readonly name = 'EncryptionFailure';
}

/** A process that encrypts one value at a time. */
interface Worker {
  readonly process: OwnedProcess;
  /** Time of `performance.now()` after which it gets no value. */
  endsAt: number;
  /** Gets the report on the current value. */
  take(report: Report): void;
}

/** Milliseconds until the next start after a failure; the time doubles with each further failure in a row. */
const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 30_000;

const late = (timeout: number) => `not encrypted within ${timeout} ms`;

/** A few worker processes with a short queue in front of them. None is started before there is a value for it. */
export class Pool {
  readonly #options: PoolOptions;
  /** One slot for each worker, which is held also for a while after a failure. */
  readonly #slots: Semaphore;
  /** The workers without a value, first those that were killed. Each may have ended since. */
  readonly #idle: Worker[] = [];
  readonly #running = new Set<OwnedProcess>();
  readonly #stopping = new AbortController();
  /** Duration of the last successful encryption, in milliseconds. */
  #lastDuration = 0;
  #failuresInRow = 0;
  /** Time of `performance.now()` until which no worker is started. */
  #pausedUntil = 0;
  /** Number of workers that encrypt a value. */
  busy = 0;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#slots = new Semaphore(options.workers);
    // Each worker that pauses listens: from the eleventh on, Node.js would warn of a leak.
    setMaxListeners(0, this.#stopping.signal);
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
    for (const process of this.#running) process.kill();
    await Promise.all([...this.#running].map(({ ended }) => ended));
  }

  /** Waits for a worker and encrypts. @returns undefined if no client waits for the ciphertext any more. */
  async #attempt(task: Task, signal: AbortSignal): Promise<Ciphertext | undefined> {
    const { timeout } = this.#options;
    const deadline = performance.now() + timeout;
    const release = this.#slots.tryAcquire() ?? (await this.#wait(signal));
    const idle = await this.#idleWorker();
    const started = performance.now();
    // A task that cannot end in time would block the worker for the next one.
    const isTooLate = deadline - started < Math.min(this.#lastDuration, timeout / 2);
    if (isTooLate || signal.aborted || this.#stopping.signal.aborted) {
      if (idle !== undefined) this.#idle.push(idle);
      release();
      throw new EncryptionFailure('it waited too long for a worker to be done in time');
    }
    this.busy += 1;
    const report = await this.#ask(task, Math.max(Math.ceil(deadline - started), 1), signal, idle);
    this.busy -= 1;
    if (report.kind === 'failed') {
      this.#backOff().then(release);
      throw new EncryptionFailure(report.reason);
    }
    release();
    if (report.kind === 'cancelled') return undefined;
    this.#failuresInRow = 0;
    this.#pausedUntil = 0;
    this.#lastDuration = performance.now() - started;
    return report.ciphertext;
  }

  async #wait(signal: AbortSignal): Promise<Release> {
    const { queue, timeout } = this.#options;
    if (this.waiting >= queue) throw new EncryptionFailure(`the queue is full (${this.waiting} waiting)`);
    const release = await this.#slots.acquire(timeout, signal);
    if (release === undefined) throw new EncryptionFailure(late(timeout));
    return release;
  }

  /** Has a worker encrypt a value. After any failure its process is ended: it may be stuck, or its keys may be old. */
  async #ask(task: Task, left: number, signal: AbortSignal, idle: Worker | undefined): Promise<Report> {
    let worker: Worker;
    try {
      worker = idle ?? this.#start();
    } catch (error) {
      return { kind: 'failed', reason: `no worker could be started: ${errorText(error)}` };
    }
    const { process } = worker;
    // The process stays: clients that come and go must not make it fetch the keys again and again.
    const cancel = () => tell(process, { kind: 'cancel' });
    signal.addEventListener('abort', cancel);
    const reported = new Promise<Report>((resolve) => {
      worker.take = resolve;
    });
    tell(process, { kind: 'encrypt', task, timeout: left });
    const end = await withTimeout(left, reported);
    const report: Report = end === LATE ? { kind: 'failed', reason: late(this.#options.timeout) } : end;
    signal.removeEventListener('abort', cancel);
    if (report.kind === 'failed') {
      worker.endsAt = Number.NEGATIVE_INFINITY;
      process.kill();
      this.#idle.unshift(worker);
    } else this.#idle.push(worker);
    return report;
  }

  /** Returns a worker without a value; undefined if there is none, or it has ended: it had failed, or was too old. */
  async #idleWorker(): Promise<Worker | undefined> {
    const worker = this.#idle.pop();
    if (worker === undefined || !this.#running.has(worker.process)) return undefined;
    if (performance.now() <= worker.endsAt) return worker;
    worker.process.kill();
    // Its memory has to be free before the next process needs as much.
    await worker.process.ended;
    return undefined;
  }

  #start(): Worker {
    const { spawn, lifetime } = this.#options;
    const process = spawn();
    this.#running.add(process);
    const worker: Worker = { process, endsAt: performance.now() + lifetime, take: () => undefined };
    process.child.on('message', (report: Report) => worker.take(report));
    process.ended.then((how) => {
      this.#running.delete(process);
      worker.take({ kind: 'failed', reason: `the worker ${how}` });
    });
    return worker;
  }

  async #backOff(): Promise<void> {
    const now = performance.now();
    // Workers that fail at the same time do so for one reason.
    if (now >= this.#pausedUntil) {
      this.#pausedUntil = now + Math.min(FIRST_BACKOFF_MS * 2 ** this.#failuresInRow, LONGEST_BACKOFF_MS);
      this.#failuresInRow += 1;
    }
    await sleep(this.#pausedUntil - now, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
  }
}
