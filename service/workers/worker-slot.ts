import type { WorkerProcess } from './worker-process.ts';

/** Milliseconds before the second attempt to replace a worker; each further one waits twice as long. */
const DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;
/** Milliseconds after which the next failure of a worker is its first again. */
const LONG_LIFE_MS = 30_000;

/** The workers of one number, one after the other, and when the next one comes. */
export class WorkerSlot {
  worker: WorkerProcess | undefined;
  /** Failures since one lived long. */
  #failures = 0;
  #retry: NodeJS.Timeout | undefined;

  get isRetrying(): boolean {
    return this.#retry !== undefined;
  }

  /** @returns the milliseconds to wait before the worker that has ended is replaced. */
  fail({ readySince }: WorkerProcess, isForgiven: boolean): number {
    this.worker = undefined;
    if (isForgiven || performance.now() - readySince >= LONG_LIFE_MS) this.forgive();
    const wait = this.#failures === 0 ? 0 : Math.min(DELAY_MS * 2 ** (this.#failures - 1), LONGEST_DELAY_MS);
    this.#failures += 1;
    return wait;
  }

  /** Counts failures from none again. */
  forgive(): void {
    this.#failures = 0;
  }

  retryIn(milliseconds: number, start: () => void): void {
    this.#retry = setTimeout(start, milliseconds);
  }

  cancelRetry(): void {
    clearTimeout(this.#retry);
    this.#retry = undefined;
  }
}
