import { closeSync, constants, openSync, readSync, type Stats, statSync } from 'node:fs';
import { access, type FileHandle, open, readlink, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { rotatedFiles, rotatedName } from '../../lib/files/rotated.ts';
import type { Log } from '../../plugins-sdk/log.ts';
import { codeOf, explained, realFile } from '../shared/file-faults.ts';

const LINE_FEED = 10;
const [OPEN] = Buffer.from('{');
/** The key that names the file. */
export const FIELD = 'settings.audit.path';

export interface RollingFileOptions {
  readonly path: string;
  /** Bytes from which on a new file is begun. */
  readonly maxSize: number;
  /** Renamed files that are kept. */
  readonly keep: number;
  /** Whether lines are on disk before they count as written. */
  readonly sync: boolean;
  readonly log: Log;
  /** Epoch milliseconds. */
  now(): number;
}

function isSame(a: Stats, b: Stats): boolean {
  return a.ino === b.ino && a.dev === b.dev;
}

function dayOf(milliseconds: number): number {
  return Math.floor(milliseconds / 86_400_000);
}

/**
 * A file to which several processes append lines. Each batch is one write behind the end, which the system does not mix with others.
 * The file is renamed when it is large, and with the first line of a day (UTC). Any process may do that, or a program for logs: the name
 * is looked up before each batch.
 */
export class RollingFile {
  readonly #options: RollingFileOptions;
  #path: string;
  #file: FileHandle | undefined;
  /** Epoch milliseconds in the last name: a renaming puts an end to the file that has the name already. */
  #renamedAt = 0;

  constructor(options: RollingFileOptions) {
    this.#options = options;
    this.#path = options.path;
  }

  /** @throws Error that says what is wrong with the path. */
  async start(): Promise<void> {
    if (this.#file !== undefined) return;
    const { path } = this.#options;
    await explained(FIELD, path, async () => {
      this.#path = await realFile(FIELD, { readlink, realpath, stat }, path);
      // It will be renamed one day.
      await access(dirname(this.#path), constants.W_OK | constants.X_OK);
      await this.#reopen();
    });
  }

  /** @returns how many of the lines are whole in the file, when the system has not taken all. @throws Error of the system. */
  async append(lines: readonly string[]): Promise<number> {
    const { file, size } = await this.#current();
    const begin = (await endsWithLine(file, size)) ? '' : '\n';
    const bytes = Buffer.from(`${begin}${lines.join('\n')}\n`);
    const { bytesWritten } = await file.write(bytes);
    if (this.#options.sync) await file.datasync();
    if (bytesWritten === bytes.length) return lines.length;
    return bytes.subarray(begin.length, Math.max(bytesWritten, begin.length)).filter((byte) => byte === LINE_FEED)
      .length;
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  /** The file that has the name now, a new one where it is time for that. */
  async #current(): Promise<{ readonly file: FileHandle; readonly size: number }> {
    let file = this.#file ?? (await this.#reopen());
    const there = await stat(this.#path).catch(unlessMissing);
    let about = await file.stat();
    if (there === undefined || !isSame(there, about)) {
      file = await this.#reopen();
      about = await file.stat();
    }
    const { maxSize, now } = this.#options;
    const isOld = dayOf(about.mtimeMs) < dayOf(now());
    if (about.size === 0 || (about.size < maxSize && !isOld)) return { file, size: about.size };
    this.#renamedAt = Math.max(now(), this.#renamedAt + 1);
    await rename(this.#path, rotatedName(this.#path, this.#renamedAt)).catch(unlessMissing);
    file = await this.#reopen();
    await this.#prune();
    return { file, size: (await file.stat()).size };
  }

  async #reopen(): Promise<FileHandle> {
    await this.close();
    this.#file = await open(this.#path, 'a+', 0o600);
    return this.#file;
  }

  async #prune(): Promise<void> {
    const { keep, log } = this.#options;
    for (const { path } of (await rotatedFiles(this.#path)).slice(0, -keep)) {
      await rm(path, { force: true });
      log.info('an old file of the audit record was removed', { path });
    }
  }
}

/** Whether there is a file that begins otherwise than a record does: lines would be added to somebody's file. */
export function isForeign(path: string): boolean {
  try {
    // To open a pipe would wait for its writer.
    if (!statSync(path).isFile()) return false;
    const file = openSync(path, 'r');
    try {
      const first = Buffer.alloc(1);
      return readSync(file, first) === 1 && first[0] !== OPEN;
    } finally {
      closeSync(file);
    }
  } catch {
    // The start says what is wrong with a file that cannot be read.
    return false;
  }
}

function unlessMissing(error: unknown): undefined {
  if (codeOf(error) !== 'ENOENT') throw error;
}

/** A write that was cut short, by whichever process, has left no line feed. */
async function endsWithLine(file: FileHandle, size: number): Promise<boolean> {
  if (size === 0) return true;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] === LINE_FEED;
}
