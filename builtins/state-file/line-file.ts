import type * as fs from 'node:fs/promises';
import { dirname } from 'node:path';
import { header, line, seal } from './record.ts';

/** What is used of `node:fs/promises`. */
export type StateFiles = Pick<typeof fs, 'open' | 'readlink' | 'realpath' | 'rename' | 'rm' | 'stat'>;

/** A file to which lines are added, one at a time. */
export class LineFile {
  readonly #file: fs.FileHandle;
  #size: number;
  #synced: number;
  #sealed: boolean;

  /** @param size of a file that is sealed, all of which is on disk. */
  constructor(file: fs.FileHandle, size = 0) {
    this.#file = file;
    this.#size = size;
    this.#synced = size;
    this.#sealed = size > 0;
  }

  get size(): number {
    return this.#size;
  }

  get sealed(): boolean {
    return this.#sealed;
  }

  async append(json: string): Promise<void> {
    this.#sealed = false;
    await this.#write(line(this.#synced, json));
  }

  async sync(): Promise<void> {
    await this.#file.datasync();
    this.#synced = this.#size;
  }

  /** Has damage to anything before be told from a write that did not end. */
  async seal(): Promise<void> {
    if (this.#sealed) return;
    if (this.#synced < this.#size) await this.sync();
    await this.#write(seal(this.#synced));
    this.#sealed = true;
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  async #write(bytes: Buffer): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await this.#file.write(bytes, done, bytes.length - done, this.#size);
      done += bytesWritten;
      this.#size += bytesWritten;
    }
  }

  /** Writes a file of these lines, which then takes the place of another at once and for good. */
  static async replacing(
    path: string,
    lines: Iterable<string>,
    files: StateFiles,
    /** Called once the other file is gone. */
    replaced: (file: LineFile) => void,
  ): Promise<void> {
    const next = `${path}.new`;
    const file = new LineFile(await files.open(next, 'w', 0o600));
    try {
      await file.#write(header);
      for (const json of lines) await file.append(json);
      await file.seal();
      await file.sync();
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
