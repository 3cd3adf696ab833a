import type * as fs from 'node:fs/promises';
import { dirname } from 'node:path';
import { lockFile } from './lock.ts';
import { BEGIN, header, line, mark } from './record.ts';

/** What is used of `node:fs/promises`. */
export type StateFiles = Pick<typeof fs, 'open' | 'readlink' | 'realpath' | 'rename' | 'rm' | 'stat'>;

/** A file to which lines are added, one at a time. */
export class LineFile {
  readonly #file: fs.FileHandle;
  #size: number;
  #synced: number;

  /** @param size of a file all of which is on disk, as its mark says. */
  constructor(file: fs.FileHandle, size: number) {
    this.#file = file;
    this.#size = size;
    this.#synced = size;
  }

  get size(): number {
    return this.#size;
  }

  async append(json: string): Promise<void> {
    await this.#write(line(this.#synced, json), this.#size);
  }

  /** Has all of it on disk, and then says so in the mark. A mark that a crash takes back says too little, and never too much. */
  async sync(): Promise<void> {
    if (this.#synced === this.#size) return;
    await this.#file.datasync();
    this.#synced = this.#size;
    await this.#write(mark(this.#synced), header.length);
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  async #write(bytes: Buffer, at: number): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await this.#file.write(bytes, done, bytes.length - done, at + done);
      done += bytesWritten;
      this.#size = Math.max(this.#size, at + done);
    }
  }

  /** Writes a file of these lines, which then takes the place of another at once and for good, and is locked like that. */
  static async replacing(
    path: string,
    lines: Iterable<string>,
    files: StateFiles,
    /** Called once the other file is gone. */
    replaced: (file: LineFile) => void,
  ): Promise<void> {
    const next = `${path}.new`;
    const handle = await files.open(next, 'w', 0o600);
    const file = new LineFile(handle, 0);
    try {
      await lockFile(path, handle.fd);
      await file.#write(Buffer.concat([header, mark(BEGIN)]), 0);
      for (const json of lines) await file.append(json);
      await file.sync();
      await handle.datasync();
      await files.rename(next, path);
    } catch (error) {
      await file.close().catch(() => undefined);
      await files.rm(next, { force: true }).catch(() => undefined);
      throw error;
    }
    replaced(file);
    const directory = await files.open(dirname(path), 'r');
    await directory.sync().finally(() => directory.close());
  }
}
