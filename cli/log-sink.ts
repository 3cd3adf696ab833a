import { write, writeSync } from 'node:fs';

/** Milliseconds that a line waits for others to be written with. */
const DELAY = 100;
/** Milliseconds between attempts while a reader does not keep up. */
const RETRY = 25;
/** Milliseconds that the end of the process waits for a reader. */
const PATIENCE = 1000;
/** Characters at which a batch is written without waiting. */
const EAGER = 64 * 1024;
/** Characters that may wait for a slow reader; lines beyond are dropped. */
const MAX_PENDING = 4 * 1024 * 1024;

/**
 * Writes log lines to a file descriptor in batches, without ever holding up the process: not for a reader that is slow
 * (lines beyond 4 MiB are dropped and counted) and not for one that is gone (what cannot be written is discarded).
 *
 * `pino.destination` is not used because its `flushSync` never returns once the reader of a pipe has gone.
 */
export class LogSink {
  readonly #fd: number;
  readonly #dropped: (count: number) => void;
  #pending = '';
  #writing: Buffer | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lost = 0;

  /** @param dropped told how many lines were lost, once there is room again. */
  constructor(fd: number, dropped: (count: number) => void = () => undefined) {
    this.#fd = fd;
    this.#dropped = dropped;
  }

  /** @param line with its line feed. */
  write(line: string): void {
    if (this.#pending.length + line.length > MAX_PENDING) {
      this.#lost += 1;
      return;
    }
    this.#pending += line;
    if (this.#writing === undefined) this.#schedule();
  }

  /** Writes everything now; gives up after a second when the reader takes nothing. */
  flushSync(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    let rest = Buffer.from(this.#pending);
    this.#pending = '';
    const end = Date.now() + PATIENCE;
    while (rest.length > 0) {
      try {
        rest = rest.subarray(writeSync(this.#fd, rest));
      } catch (error) {
        if (!isBusy(error) || Date.now() > end) return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY);
      }
    }
  }

  /** Resolves once everything is written, or after a second. */
  async drain(): Promise<void> {
    const end = Date.now() + PATIENCE;
    while (this.#writing !== undefined && Date.now() < end) await new Promise((done) => setTimeout(done, 5));
    if (this.#writing === undefined) this.flushSync();
  }

  #schedule(): void {
    if (this.#pending.length >= EAGER) this.#begin();
    else this.#timer ??= setTimeout(() => this.#begin(), DELAY).unref();
  }

  #begin(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = Buffer.from(this.#pending);
    this.#pending = '';
    this.#continue(this.#writing);
  }

  #continue(batch: Buffer): void {
    write(this.#fd, batch, (error, written) => {
      if (error && isBusy(error)) {
        setTimeout(() => this.#continue(batch), RETRY).unref();
        return;
      }
      const rest = error ? undefined : batch.subarray(written);
      if (rest !== undefined && rest.length > 0) {
        this.#writing = rest;
        this.#continue(rest);
        return;
      }
      this.#writing = undefined;
      this.#report();
      if (this.#pending !== '') this.#schedule();
    });
  }

  #report(): void {
    const lost = this.#lost;
    this.#lost = 0;
    if (lost > 0) this.#dropped(lost);
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN';
}
