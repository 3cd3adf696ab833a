import { writeSync } from 'node:fs';
import { codeOf } from './text.ts';

/** Milliseconds that a line waits for others to be written with. */
const BATCH_DELAY_MS = 100;
/** Milliseconds between attempts while lines cannot be written. */
const RETRY_DELAY_MS = 10;
/** Milliseconds that flushes wait for a reader or for room, in all. */
const FLUSH_TIMEOUT_MS = 1000;
/** Bytes that may wait; lines beyond are dropped. */
const MAX_PENDING = 4 * 1024 * 1024;

/** What may be over in a while: a reader that does not keep up, no room, a quota or a limit of size, a device that fails. */
const LATER = /^(?:EAGAIN|EWOULDBLOCK|ENOBUFS|ENOSPC|EDQUOT|EFBIG|EIO|ENOMEM)$/;

/**
 * Told how many lines were lost, once lines can be written again.
 * @param reason code of the error that kept them from being written, such as `ENOSPC`; none of a line that is too long.
 */
type Dropped = (count: number, reason: string | undefined) => void;

/**
 * Writes log lines to a file descriptor in batches, and does not wait. For a slow reader and a full disk lines are
 * kept; those beyond 4 MiB are dropped and counted. Where the reader is gone, lines are discarded. The descriptor must
 * be one of a file, or must not block. What was begun goes on where it ended, so that no line is torn.
 *
 * `pino.destination` is not used because its `flushSync` never returns once the reader of a pipe has gone.
 */
export class LogSink {
  readonly #fd: number;
  readonly #dropped: Dropped;
  /** Lines that wait. To append a line to a text of all of them costs 15 times as much. */
  readonly #pending = Buffer.allocUnsafeSlow(MAX_PENDING);
  #length = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Code of the error that keeps lines waiting. */
  #obstacle: string | undefined;
  #lost = 0;
  #patience = FLUSH_TIMEOUT_MS;

  constructor(fd: number, dropped: Dropped = () => undefined) {
    this.#fd = fd;
    this.#dropped = dropped;
  }

  /** @param line with its line feed. */
  write(line: string): void {
    if (Buffer.byteLength(line) > MAX_PENDING - this.#length) this.#lost += 1;
    else this.#length += this.#pending.write(line, this.#length);
    this.#timer ??= setTimeout(() => this.#turn(), BATCH_DELAY_MS).unref();
  }

  /** Writes everything now, or gives up after a second. */
  flush(): void {
    const nobody = new Int32Array(new SharedArrayBuffer(4));
    for (; !this.#attempt() && this.#patience > 0; this.#patience -= RETRY_DELAY_MS)
      Atomics.wait(nobody, 0, 0, RETRY_DELAY_MS);
  }

  #turn(): void {
    this.#timer = this.#attempt() ? undefined : setTimeout(() => this.#turn(), RETRY_DELAY_MS).unref();
  }

  /** @returns whether nothing is left to write. */
  #attempt(): boolean {
    let written = 0;
    try {
      while (written < this.#length) written += writeSync(this.#fd, this.#pending, written, this.#length - written);
    } catch (error) {
      const code = codeOf(error);
      if (LATER.test(code)) {
        this.#obstacle = code;
        this.#pending.copyWithin(0, written, this.#length);
        this.#length -= written;
        return false;
      }
      // The reader is gone, and none will come.
      this.#lost = 0;
    }
    this.#length = 0;
    const [lost, obstacle] = [this.#lost, this.#obstacle];
    this.#lost = 0;
    this.#obstacle = undefined;
    if (lost > 0) this.#dropped(lost, obstacle);
    // The report is a line, too.
    return this.#length === 0 || this.#attempt();
  }
}
