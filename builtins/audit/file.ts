import { type FileHandle, open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { withTimeout } from '../../lib/time.ts';
import type { Log } from '../../plugins-sdk/index.ts';
import type { Measure } from '../../plugins-sdk/observe.ts';
import { codeOf, explained } from '../shared/file-faults.ts';

/** The config key of the file. */
const FIELD = 'settings.audit.path';
/** Milliseconds for which lines are collected before a write. */
const DELAY_MS = 50;
/** Milliseconds between two attempts while the file cannot be written. */
const RETRY_MS = 1000;
/** Milliseconds that a stop has to write the remaining lines. */
const CLOSE_TIMEOUT_MS = 3000;
/** The most characters that wait to be written, about twenty thousand lines. */
const MOST_WAITING = 8 << 20;
const LINE_FEED = 10;
const BRACE = 0x7b;

/** A file to which lines are appended after their requests. Lines beyond what may wait are dropped, and counted. */
export class AuditFile {
  readonly #path: string;
  readonly #sync: boolean;
  readonly #log: Log;
  readonly #counted: Measure<'outcome'>;
  readonly #waiting: string[] = [];
  readonly #closing = new AbortController();
  #characters = 0;
  #working: Promise<void> | undefined;
  /** Lines lost since the last successful write; undefined while writes succeed. */
  #lostInOutage: number | undefined;

  /** @param sync whether lines count as written only when they are on disk (fsync). */
  constructor(path: string, sync: boolean, log: Log, counted: Measure<'outcome'>) {
    this.#path = path;
    this.#sync = sync;
    this.#log = log;
    this.#counted = counted;
  }

  /** Whether the last write has failed. */
  get isFailing(): boolean {
    return this.#lostInOutage !== undefined;
  }

  /** Checks that the file can be written and holds an audit record. @throws Error that says what is wrong with the path. */
  async start(): Promise<void> {
    const path = this.#path;
    await explained(FIELD, path, async () => {
      const begin = await withFile(path, (file) => byteAt(file, 0));
      if (begin !== undefined && begin !== BRACE)
        throw new Error(
          `${FIELD}: ${path} has something else in it, which does not begin with "{": choose another file`,
        );
    });
  }

  /** Queues a line, or drops it if too many wait. @param line without its line feed. */
  add(line: string): void {
    if (this.#characters + line.length > MOST_WAITING && this.#waiting.length > 0) this.#lose();
    else {
      this.#waiting.push(line);
      this.#characters += line.length;
    }
    this.#working ??= this.#work();
  }

  /** Writes the remaining lines, within 3 seconds. */
  async close(): Promise<void> {
    this.#closing.abort();
    await withTimeout(CLOSE_TIMEOUT_MS, this.#working);
    const lost = this.#waiting.length;
    if (lost === 0) return;
    this.#counted({ outcome: 'lost' }, lost);
    this.#log.error('the end of the audit record is lost', { path: this.#path, lost });
  }

  /** Writes until no line waits. A stop ends the pause before the next attempt, which is then the last. */
  async #work(): Promise<void> {
    const { signal } = this.#closing;
    do {
      await sleep(this.isFailing ? RETRY_MS : DELAY_MS, undefined, { signal, ref: false }).catch(() => undefined);
      await this.#write();
    } while (this.#waiting.length > 0 && !signal.aborted);
    this.#working = undefined;
  }

  async #write(): Promise<void> {
    const path = this.#path;
    const waiting = this.#waiting;
    try {
      while (waiting.length > 0) {
        const written = await append(path, waiting, this.#sync);
        for (const line of waiting.splice(0, written)) this.#characters -= line.length;
        this.#counted({ outcome: 'written' }, written);
      }
      if (this.isFailing) this.#log.warn('the audit record is written again', { path, lost: this.#lostInOutage });
      this.#lostInOutage = undefined;
    } catch (error) {
      if (this.isFailing) return;
      this.#lostInOutage = 0;
      this.#log.error('the audit record cannot be written', { path, error: codeOf(error), waiting: waiting.length });
    }
  }

  #lose(): void {
    if (!this.#lostInOutage) {
      const fields = { path: this.#path, waiting: this.#waiting.length };
      this.#log.error('lines of the audit record are lost: no more of them can wait', fields);
    }
    this.#lostInOutage = (this.#lostInOutage ?? 0) + 1;
    this.#counted({ outcome: 'lost' }, 1);
  }
}

/** Opens the file for each use, so that a log rotator may move it away. */
async function withFile<T>(path: string, run: (file: FileHandle) => Promise<T>): Promise<T> {
  const file = await open(path, 'a+', 0o600);
  try {
    return await run(file);
  } finally {
    await file.close();
  }
}

/** Appends lines. @returns how many are whole in the file, if the system took only a part. @throws Error of the system. */
function append(path: string, lines: readonly string[], sync: boolean): Promise<number> {
  return withFile(path, async (file) => {
    const { size } = await file.stat();
    // A line that any process left unfinished ends here. If that process was still writing, this line is empty.
    const begin = [undefined, LINE_FEED].includes(await byteAt(file, size - 1)) ? '' : '\n';
    const bytes = Buffer.from(begin + lines.map((line) => `${line}\n`).join(''));
    // One write is not mixed with writes of other processes.
    const { bytesWritten } = await file.write(bytes);
    if (sync) await file.datasync();
    return bytes.subarray(begin.length, bytesWritten).filter((byte) => byte === LINE_FEED).length;
  });
}

async function byteAt(file: FileHandle, position: number): Promise<number | undefined> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(1), 0, 1, Math.max(position, 0));
  return bytesRead === 0 ? undefined : buffer[0];
}
