import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs';
import { codeOf } from './text.ts';

/** Milliseconds that a line waits for others to be written with. */
const BATCH_DELAY_MS = 100;
/** Milliseconds between attempts while a reader does not keep up. */
const RETRY_DELAY_MS = 10;
/** Milliseconds between attempts while there is no room on the disk. */
const FULL_DISK_RETRY_DELAY_MS = 500;
/** Milliseconds that the end of the process waits for a reader, in all. */
const SLOW_READER_TIMEOUT_MS = 1000;
/** Characters at which a batch is written without waiting. */
const EAGER = 64 * 1024;
/** Characters that may wait; lines beyond are dropped. */
const MAX_PENDING = 4 * 1024 * 1024;

/** A reader that does not keep up. */
const SLOW: ReadonlySet<string> = new Set(['EAGAIN', 'EWOULDBLOCK', 'ENOBUFS']);
/** What may be over in a while: no room, a quota or a limit of size that is reached, a device that fails. */
const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO', 'ENOMEM']);

/**
 * Told how many lines were lost, once lines can be written again.
 * @param reason code of the error that kept them from being written, such as `ENOSPC`; none of a line that is too long.
 */
type Dropped = (count: number, reason: string | undefined) => void;

/**
 * Writes log lines to a file descriptor in batches, and does not wait. For a slow reader and a full disk lines are
 * kept; those beyond 4 MiB are dropped and counted. Where the reader is gone, lines are discarded. The descriptor must
 * be one of a file, or must not block. What was begun goes on where it
 * ended, so that no line is torn.
 *
 * `pino.destination` is not used because its `flushSync` never returns once the reader of a pipe has gone.
 */
export class LogSink {
  readonly #fd: number;
  readonly #dropped: Dropped;
  #pending = '';
  /** What is left of the lines that are being written. */
  #begun = Buffer.alloc(0);
  #timer: NodeJS.Timeout | undefined;
  /** Code of the error that keeps lines waiting. */
  #obstacle: string | undefined;
  #lost = 0;
  #timeLeft = SLOW_READER_TIMEOUT_MS;

  constructor(fd: number, dropped: Dropped = () => undefined) {
    this.#fd = fd;
    this.#dropped = dropped;
  }

  /** @param line with its line feed. */
  write(line: string): void {
    if (this.#pending.length + this.#begun.length + line.length > MAX_PENDING) this.#lost += 1;
    else this.#pending += line;
    if (this.#pending.length >= EAGER && this.#obstacle === undefined) this.#turn();
    else this.#timer ??= setTimeout(() => this.#turn(), BATCH_DELAY_MS).unref();
  }

  /** Writes everything now; gives up when the reader takes nothing for a second, or there is no room. */
  flushSync(): void {
    while (!this.#attempt() && this.#mayWait())
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_DELAY_MS);
  }

  /** Resolves once everything is written, or when {@link flushSync} would give up. */
  async drain(): Promise<void> {
    while (!this.#attempt() && this.#mayWait()) await new Promise((done) => setTimeout(done, RETRY_DELAY_MS));
  }

  #mayWait(): boolean {
    this.#timeLeft -= RETRY_DELAY_MS;
    return this.#timeLeft >= 0 && SLOW.has(this.#obstacle ?? '');
  }

  #turn(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#attempt()) {
      this.#timeLeft = SLOW_READER_TIMEOUT_MS;
      return;
    }
    const delay = SLOW.has(this.#obstacle ?? '') ? RETRY_DELAY_MS : FULL_DISK_RETRY_DELAY_MS;
    this.#timer = setTimeout(() => this.#turn(), delay).unref();
  }

  /** @returns whether nothing is left to write. */
  #attempt(): boolean {
    try {
      while (this.#begin()) {
        const written = writeSync(this.#fd, this.#begun);
        this.#begun = this.#begun.subarray(written);
      }
    } catch (error) {
      const code = codeOf(error);
      if (SLOW.has(code) || FULL.has(code)) {
        this.#obstacle = code;
        return false;
      }
      // Nobody reads, and nobody will.
      this.#begun = Buffer.alloc(0);
      this.#pending = '';
      this.#lost = 0;
    }
    this.#report();
    // The report is a line, too.
    return this.#pending === '' || this.#attempt();
  }

  /** @returns whether there is something to write. */
  #begin(): boolean {
    if (this.#begun.length === 0) {
      this.#begun = Buffer.from(this.#pending);
      this.#pending = '';
    }
    return this.#begun.length > 0;
  }

  #report(): void {
    const [lost, obstacle] = [this.#lost, this.#obstacle];
    this.#lost = 0;
    this.#obstacle = undefined;
    if (lost > 0) this.#dropped(lost, obstacle);
  }
}

/** Whether a file ends in the middle of a line, because an earlier process found no room for the rest. */
export function endsWithinLine(fd: number): boolean {
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile() || stats.size === 0) return false;
    const readable = openSync(`/dev/fd/${fd}`, 'r');
    try {
      const last = Buffer.alloc(1);
      return readSync(readable, last, 0, 1, stats.size - 1) === 1 && last.toString() !== '\n';
    } finally {
      closeSync(readable);
    }
  } catch {
    // One that may not be read.
    return false;
  }
}
