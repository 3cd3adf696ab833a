import type { FileHandle } from 'node:fs/promises';
import { type Log, StateUnavailable } from '../../plugins-sdk/index.ts';
import { codeOf } from '../shared/file-faults.ts';
import { LineFile, type StateFiles } from './line-file.ts';
import { inUse, lockFile } from './lock.ts';
import { type Change, replay } from './record.ts';

/** Milliseconds after the last change. */
const SEAL_DELAY_MS = 100;
/** Milliseconds between two attempts to write a file that failed. */
const HEAL_INTERVAL_MS = 1000;
/** Bytes; a smaller file is never worth being written anew. */
const COMPACT_FROM = 1 << 20;
/** How many times as large as when it was last written anew a file may be. */
const SLACK = 4;
/** Characters that are made at once while a file is written anew. */
const SLICE = 1 << 16;
/** Most changes that share a line. */
const BATCH = 4096;

interface Waiting {
  readonly change: Change;
  readonly durable: boolean;
  resolve(): void;
  reject(error: Error): void;
}

export interface ChangeLogOptions {
  readonly path: string;
  readonly files: StateFiles;
  readonly log: Log;
  now(): number;
  /** All that the changes so far came to. */
  live(): Iterable<Change>;
  /** How many these are, about. */
  size(): number;
}

/**
 * The file of changes. One line at a time is written, with all changes that wait by then. After an error the system may
 * have forgotten what it could not write. So nothing is confirmed until all that lives was written to a new file.
 */
export class ChangeLog {
  readonly #options: ChangeLogOptions;
  #file: LineFile | undefined;
  #queue: Waiting[] = [];
  #writing: readonly Waiting[] = [];
  #working: Promise<void> | undefined;
  #broken: StateUnavailable | undefined;
  #healing: Promise<void> | undefined;
  #healedAt = Number.NEGATIVE_INFINITY;
  #compactAt = COMPACT_FROM;
  #sealDue = false;
  #sealing: NodeJS.Timeout | undefined;

  constructor(options: ChangeLogOptions) {
    this.#options = options;
  }

  /** Reads the file, or makes one. */
  async start(apply: (changes: readonly Change[]) => void): Promise<void> {
    const { path, files, log } = this.#options;
    const file = await this.#open();
    let changes = 0;
    const count = (some: readonly Change[]) => {
      changes += some.length;
      apply(some);
    };
    const found = await (file && replay(path, file, count))?.catch(async (error) => {
      await file?.close();
      throw error;
    });
    await files.rm(`${path}.new`, { force: true });
    if (found !== undefined && found.torn > 0) {
      log.warn('the end of the state file, a write that was cut short, was dropped', { path, bytes: found.torn });
    }
    if (file !== undefined) this.#file = new LineFile(file, found?.size ?? 0);
    // Else the first change after each start would have a long file written anew.
    if (found !== undefined && changes > 0) this.#grewFrom((found.size * this.#options.size()) / changes);
    // What was not known to be on disk may never get there.
    if (found?.sealed !== true) await this.#rewrite();
  }

  /** What is to be awaited before the next change: after an error, an attempt to make up for it. @throws StateUnavailable */
  sound(): Promise<void> | undefined {
    if (this.#broken === undefined) return undefined;
    this.#healing ??= this.#heal(this.#broken).finally(() => {
      this.#healing = undefined;
    });
    return this.#healing;
  }

  /** Resolves once the change is on disk, if it is to be durable, else once it is written. @throws StateUnavailable */
  append(change: Change, durable: boolean): Promise<void> {
    if (this.#broken !== undefined) return Promise.reject(this.#broken);
    return new Promise((resolve, reject) => {
      this.#queue.push({ change, durable, resolve, reject });
      this.#work();
    });
  }

  async close(): Promise<void> {
    clearTimeout(this.#sealing);
    await this.#healing?.catch(() => undefined);
    if (this.#file === undefined) return;
    if (this.#broken !== undefined) await this.#rewrite().catch(() => undefined);
    else await this.#sealNow();
    await this.#file.close();
  }

  /** The file, if there is one, which is nobody else's. */
  async #open(): Promise<FileHandle | undefined> {
    const { path, files } = this.#options;
    const file = await files.open(path, 'r+').catch((error) => {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw error;
    });
    try {
      if (file === undefined) return undefined;
      await lockFile(path, file.fd);
      // Another one may have taken its place just before.
      if ((await file.stat()).ino !== (await files.stat(path)).ino) throw inUse(path);
      return file;
    } catch (error) {
      await file?.close();
      throw error;
    }
  }

  async #heal(broken: StateUnavailable): Promise<void> {
    const { now, log, path } = this.#options;
    const elapsed = now() - this.#healedAt;
    if (elapsed >= 0 && elapsed < HEAL_INTERVAL_MS) throw broken;
    this.#healedAt = now();
    await this.#rewrite().catch((error) => {
      throw this.#unavailable(error);
    });
    this.#broken = undefined;
    log.info('the state file can be written again', { path });
  }

  #work(): Promise<void> {
    this.#working ??= this.#drain();
    return this.#working;
  }

  async #drain(): Promise<void> {
    // Lets all changes of one turn share a line.
    await undefined;
    while (this.#broken === undefined && (this.#queue.length > 0 || this.#sealDue)) {
      await this.#step().catch((error) => this.#fail(error));
    }
    this.#working = undefined;
  }

  async #step(): Promise<void> {
    const file = this.#file;
    if (file === undefined) throw new Error('it is not open');
    if (this.#queue.length > 0) await this.#commit(file);
    else {
      this.#sealDue = false;
      await file.sync();
    }
    if (file.size > this.#compactAt) await this.#compact(file);
  }

  async #commit(file: LineFile): Promise<void> {
    this.#writing = this.#queue.splice(0, BATCH);
    await file.append(JSON.stringify(this.#writing.map(({ change }) => change)));
    if (this.#writing.some(({ durable }) => durable)) await file.sync();
    for (const waiting of this.#writing) waiting.resolve();
    this.#writing = [];
    this.#sealing = this.#sealing?.refresh() ?? setTimeout(() => this.#sealNow(), SEAL_DELAY_MS).unref();
  }

  #sealNow(): Promise<void> {
    this.#sealDue = true;
    return this.#work();
  }

  /** Changes wait meanwhile. */
  async #compact(file: LineFile): Promise<void> {
    try {
      await this.#rewrite();
    } catch (error) {
      if (this.#file !== file) throw error;
      this.#compactAt = 2 * file.size;
      const { path, log } = this.#options;
      log.warn('the state file cannot be made smaller', { path, error: codeOf(error) });
    }
  }

  async #rewrite(): Promise<void> {
    const { path, files, live } = this.#options;
    const before = this.#file;
    await LineFile.replacing(path, slices(live()), files, (file) => {
      this.#file = file;
      this.#grewFrom(file.size);
      before?.close().catch(() => undefined);
    });
  }

  /** @param bytes that the file need have. */
  #grewFrom(bytes: number): void {
    this.#compactAt = Math.max(COMPACT_FROM, SLACK * bytes);
  }

  #fail(error: unknown): void {
    const { path, log } = this.#options;
    const broken = this.#unavailable(error);
    log.error('the state file cannot be written: what needs it is refused', { path, error: codeOf(error) });
    for (const waiting of [...this.#writing, ...this.#queue.splice(0)]) waiting.reject(broken);
    this.#writing = [];
  }

  #unavailable(error: unknown): StateUnavailable {
    this.#broken = new StateUnavailable(`the state file ${this.#options.path} cannot be written: ${codeOf(error)}`);
    return this.#broken;
  }
}

/** Lines of a new file. */
function* slices(changes: Iterable<Change>): Generator<string> {
  let texts: string[] = [];
  let length = 0;
  for (const change of changes) {
    const text = JSON.stringify(change);
    length += text.length;
    texts.push(text);
    if (length < SLICE) continue;
    yield `[${texts.join(',')}]`;
    texts = [];
    length = 0;
  }
  if (texts.length > 0) yield `[${texts.join(',')}]`;
}
