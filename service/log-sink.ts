import { writeSync } from 'node:fs';
import { codeOf } from './text.ts';

/** Milliseconds for which a line waits, to be written together with others. */
const BATCH_DELAY_MS = 100;
/** Most bytes that wait for a batch: more would leave the processor's fast memory. */
const BATCH = 64 * 1024;
/** Milliseconds between attempts while lines cannot be written. */
const RETRY_DELAY_MS = 10;
/** Milliseconds that an exit may wait for a slow reader or a full disk. */
const END_TIMEOUT_MS = 1000;
/** Bytes that may wait; lines beyond are dropped. */
const MAX_PENDING = 4 * 1024 * 1024;

/** Errors that may pass: a slow reader, a full disk, a quota or size limit, a failing device. */
const LATER = /^(?:EAGAIN|EWOULDBLOCK|ENOBUFS|ENOSPC|EDQUOT|EFBIG|EIO|ENOMEM)$/;

/**
 * Receives the number of lost lines, once lines can be written again.
 * @param reason code of the error that held the lines up, such as `ENOSPC`; undefined for a line that is too long.
 */
type Dropped = (count: number, reason: string | undefined) => void;

/**
 * Writes log lines to a file descriptor in batches, without blocking. While the reader is slow or the disk full, up to
 * 4 MiB of lines are kept; lines beyond that are dropped and counted. If the reader is gone, all lines are discarded.
 * The descriptor must be that of a file, or non-blocking. A partly written line is continued, so no line is torn.
 *
 * `pino.destination` is not used because its `flushSync` never returns once the reader of a pipe has gone.
 */
export class LogSink {
  readonly #fd: number;
  readonly #dropped: Dropped;
  /** Waiting lines. Appending to one long string costs 15 times as much. */
  readonly #pending = Buffer.allocUnsafeSlow(MAX_PENDING);
  #length = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Code of the error that makes lines wait. */
  #obstacle: string | undefined;
  #lost = 0;

  constructor(fd: number, dropped: Dropped = () => undefined) {
    this.#fd = fd;
    this.#dropped = dropped;
  }

  /** Queues a line. @param line text with its line feed. */
  write(line: string): void {
    const size = Buffer.byteLength(line);
    // While lines cannot be written, as many wait as can.
    if (this.#length + size > (this.#obstacle === undefined ? BATCH : MAX_PENDING)) this.flush();
    if (size > MAX_PENDING - this.#length) this.#lost += 1;
    else this.#length += this.#pending.write(line, this.#length);
    this.#timer ??= setTimeout(() => this.#turn(), BATCH_DELAY_MS).unref();
  }

  /** Writes all waiting lines before the process exits; gives up after a second. */
  end(): void {
    for (let patience = END_TIMEOUT_MS; !this.flush() && patience > 0; patience -= RETRY_DELAY_MS)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_DELAY_MS);
  }

  #turn(): void {
    this.#timer = this.flush() ? undefined : setTimeout(() => this.#turn(), RETRY_DELAY_MS).unref();
  }

  /** Writes waiting lines now, as many as can be written. @returns whether none is left. */
  flush(): boolean {
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
      // The reader is gone for good.
      this.#lost = 0;
    }
    this.#length = 0;
    const [lost, obstacle] = [this.#lost, this.#obstacle];
    this.#lost = 0;
    this.#obstacle = undefined;
    if (lost > 0) this.#dropped(lost, obstacle);
    // `#dropped` has written a line, too.
    return this.#length === 0 || this.flush();
  }
}
