import type { Ciphertext, Task } from './protocol.ts';

/** Why there is no ciphertext; for the log only. */
export class EncryptionFailure extends Error {
  override readonly name = 'EncryptionFailure';
}

export type EncryptionOutcome = Ciphertext | EncryptionFailure;

/** One value on its way to its ciphertext. It ends once: with an outcome, at its deadline, or when its client leaves. */
export class Job {
  readonly task: Task;
  readonly #deadline: number;
  readonly #timer: NodeJS.Timeout;
  readonly #signal: AbortSignal;
  readonly #onEnd: (outcome: EncryptionOutcome) => void;
  #ended = false;
  #late = false;

  /**
   * @param timeout milliseconds for everything.
   * @param signal aborts when the client leaves.
   */
  constructor(task: Task, timeout: number, signal: AbortSignal, onEnd: (outcome: EncryptionOutcome) => void) {
    this.task = task;
    this.#deadline = performance.now() + timeout;
    this.#signal = signal;
    this.#onEnd = onEnd;
    this.#timer = setTimeout(() => {
      this.#late = true;
      this.fail(`not encrypted within ${timeout} ms`);
    }, timeout);
    signal.addEventListener('abort', this);
  }

  /** Milliseconds until the deadline. */
  get remaining(): number {
    return this.#deadline - performance.now();
  }

  /** Whether it ended at its deadline. */
  get isLate(): boolean {
    return this.#late;
  }

  succeed(ciphertext: Ciphertext): void {
    this.#end(ciphertext);
  }

  fail(reason: string): void {
    this.#end(new EncryptionFailure(reason));
  }

  /** Called by the signal. */
  handleEvent(): void {
    this.fail('the client left');
  }

  #end(outcome: EncryptionOutcome): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#signal.removeEventListener('abort', this);
    this.#onEnd(outcome);
  }
}
