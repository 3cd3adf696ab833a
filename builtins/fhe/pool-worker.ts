import { setTimeout as sleep } from 'node:timers/promises';
import type { OwnedProcess } from '../../lib/process/child-process.ts';
import { errorText } from '../../lib/text.ts';
import { withTimeout } from '../../lib/time.ts';
import type { Ciphertext, Report, Task } from './protocol.ts';
import { tell } from './spawn.ts';

export interface PoolWorkerOptions {
  /** Starts a worker process. */
  readonly spawn: () => OwnedProcess;
  /** Milliseconds after which a process is replaced, so that it picks up rotated keys. */
  readonly lifetime: number;
  /** Timeout of an encryption in milliseconds, the wait for a worker included. */
  readonly timeout: number;
}

/** An encryption failed. The message is for the log only. */
export class EncryptionFailure extends Error {
  override readonly name = 'EncryptionFailure';
}

export const late = (timeout: number) => `not encrypted within ${timeout} ms`;

/** Milliseconds until the first replacement after a failure; the time doubles with each further failure in a row. */
const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 30_000;

/**
 * Encrypts one value at a time in a process of its own. It starts the process when there is a value, and replaces it after any
 * failure: the process may be stuck, or its keys may be old.
 */
export class PoolWorker {
  readonly #options: PoolWorkerOptions;
  readonly #stopping: AbortSignal;
  #process: OwnedProcess | undefined;
  #bornAt = 0;
  #failures = 0;
  #take: (report: Report) => void = () => undefined;

  constructor(options: PoolWorkerOptions, stopping: AbortSignal) {
    this.#options = options;
    this.#stopping = stopping;
  }

  /**
   * Encrypts a value. Call it again only after it has resolved, or after {@link recover}.
   *
   * @param deadline time of `performance.now()` at which the process counts as stuck.
   * @param signal prevents or ends the call to the relayer. The process stays: clients that come and go must not make it fetch
   * the keys again and again.
   * @returns undefined if the signal or a stop came first.
   * @throws EncryptionFailure
   */
  async encrypt(task: Task, deadline: number, signal: AbortSignal): Promise<Ciphertext | undefined> {
    const { lifetime, timeout } = this.#options;
    if (performance.now() - this.#bornAt > lifetime) await this.end();
    if (signal.aborted || this.#stopping.aborted) return undefined;
    const started = this.#process ?? this.#start();
    const cancel = () => tell(started, { kind: 'cancel' });
    signal.addEventListener('abort', cancel);
    const left = Math.max(Math.ceil(deadline - performance.now()), 1);
    const reported = new Promise<Report>((resolve) => {
      this.#take = resolve;
    });
    tell(started, { kind: 'encrypt', task, timeout: left });
    const report = await withTimeout(left, reported, (): Report => ({ kind: 'failed', reason: late(timeout) }));
    signal.removeEventListener('abort', cancel);
    if (report.kind === 'failed') throw new EncryptionFailure(report.reason);
    if (report.kind === 'cancelled') return undefined;
    this.#failures = 0;
    return report.ciphertext;
  }

  /** Ends the process after a failure. Resolves once this worker may encrypt again. */
  async recover(): Promise<void> {
    const backoff = Math.min(FIRST_BACKOFF_MS * 2 ** this.#failures, LONGEST_BACKOFF_MS);
    this.#failures += 1;
    await this.end();
    await sleep(backoff, undefined, { signal: this.#stopping }).catch(() => undefined);
  }

  /** Kills the process, whatever it is doing. */
  async end(): Promise<void> {
    this.#process?.kill();
    await this.#process?.ended;
  }

  #start(): OwnedProcess {
    try {
      const started = this.#options.spawn();
      started.child.on('message', (report: Report) => this.#take(report));
      started.ended.then((how) => {
        this.#process = undefined;
        this.#take({ kind: 'failed', reason: `the worker ${how}` });
      });
      this.#process = started;
      this.#bornAt = performance.now();
      return started;
    } catch (error) {
      throw new EncryptionFailure(`no worker could be started: ${errorText(error)}`);
    }
  }
}
