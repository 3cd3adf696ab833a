import { withTimeout } from '../../lib/time/with-timeout.ts';
import type { Log } from '../../plugins-sdk/log.ts';
import type { Measure } from '../../plugins-sdk/meters.ts';
import { codeOf } from '../shared/file-faults.ts';
import type { RollingFile } from './rolling-file.ts';

/** Milliseconds in which lines are collected. */
const DELAY_MS = 50;
/** Milliseconds between two attempts while the file cannot be written. */
const RETRY_MS = 1000;
/** Milliseconds that a stop has to write what is left. */
const CLOSE_TIMEOUT_MS = 3000;
/** Characters that wait at most: those of some ten thousand lines. */
const MOST_WAITING = 8 << 20;
/** Characters of one write; a longer line goes alone. */
const MOST_AT_ONCE = 1 << 18;

export interface WriterOptions {
  readonly file: RollingFile;
  readonly path: string;
  readonly log: Log;
  /** Counts lines. */
  readonly counted: Measure<'outcome'>;
}

/** Writes lines behind the requests that they are of: nobody waits for it, and what cannot wait any more is lost, and counted. */
export class Writer {
  readonly #options: WriterOptions;
  readonly #waiting: string[] = [];
  #characters = 0;
  #timer: NodeJS.Timeout | undefined;
  #working: Promise<void> | undefined;
  /** Lines lost since the file could be written last; nothing while it can. */
  #lostInOutage: number | undefined;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  get isFailing(): boolean {
    return this.#lostInOutage !== undefined;
  }

  start(): Promise<void> {
    return this.#options.file.start();
  }

  add(line: string): void {
    if (this.#characters + line.length > MOST_WAITING && this.#waiting.length > 0) {
      this.#lose();
      return;
    }
    this.#waiting.push(line);
    this.#characters += line.length;
    if (this.#working === undefined) this.#timer ??= setTimeout(() => this.#work(), DELAY_MS).unref();
  }

  /** Writes what is left, within bounds. */
  async close(): Promise<void> {
    const { file, log, path } = this.#options;
    const written = (async () => {
      await this.#working;
      await this.#work();
      await file.close().catch(() => undefined);
    })();
    await withTimeout(CLOSE_TIMEOUT_MS, written, () => undefined);
    clearTimeout(this.#timer);
    const lost = this.#waiting.length;
    if (lost === 0) return;
    this.#options.counted({ outcome: 'lost' }, lost);
    log.error('the end of the audit record is lost', { path, lost });
  }

  #work(): Promise<void> {
    clearTimeout(this.#timer);
    this.#working ??= this.#drain().finally(() => {
      this.#working = undefined;
      const wait = this.isFailing ? RETRY_MS : DELAY_MS;
      this.#timer = this.#waiting.length > 0 ? setTimeout(() => this.#work(), wait).unref() : undefined;
    });
    return this.#working;
  }

  async #drain(): Promise<void> {
    const { file, path, log, counted } = this.#options;
    try {
      while (this.#waiting.length > 0) {
        const batch = this.#batch();
        const done = await file.append(batch);
        for (const line of this.#waiting.splice(0, done)) this.#characters -= line.length;
        counted({ outcome: 'written' }, done);
        // The next attempt says why.
        if (done === batch.length) this.#recovered();
      }
    } catch (error) {
      if (this.isFailing) return;
      this.#lostInOutage = 0;
      const fields = { path, error: codeOf(error), waiting: this.#waiting.length };
      log.error('the audit record cannot be written', fields);
    }
  }

  #batch(): readonly string[] {
    let characters = 0;
    const end = this.#waiting.findIndex((line, index) => {
      characters += line.length;
      return index > 0 && characters > MOST_AT_ONCE;
    });
    return this.#waiting.slice(0, end === -1 ? undefined : end);
  }

  #lose(): void {
    if (this.#lostInOutage === 0 || !this.isFailing) {
      const { log, path } = this.#options;
      log.error('lines of the audit record are lost: no more of them can wait', {
        path,
        waiting: this.#waiting.length,
      });
    }
    this.#lostInOutage = (this.#lostInOutage ?? 0) + 1;
    this.#options.counted({ outcome: 'lost' }, 1);
  }

  #recovered(): void {
    if (this.#lostInOutage === undefined || this.#characters > MOST_WAITING / 2) return;
    const { log, path } = this.#options;
    log.warn('the audit record is written again', { path, lost: this.#lostInOutage });
    this.#lostInOutage = undefined;
  }
}
