import * as nodeFiles from 'node:fs/promises';
import type { StateFiles } from '../../builtins/state-file/line-file.ts';

/** A file as programs see it, and as it is on the disk. */
interface Inode {
  seen: Buffer;
  synced: Buffer;
}

/**
 * The file system, with a memory of what is on the disk for sure, so that it can say what may be found there after a loss
 * of power at any moment. Only files that are opened for writing through it count.
 */
export class Disk {
  readonly #look: (disk: Disk) => void;
  #names = new Map<string, Inode>();
  #syncedNames = new Map<string, Inode>();

  /** @param look called before and after each operation. */
  constructor(look: (disk: Disk) => void) {
    this.#look = look;
  }

  /** What may be under a name after the power is lost, or the process killed: `undefined` is no file. */
  outcomes(path: string): (Buffer | undefined)[] {
    const inodes = [this.#names.get(path), this.#syncedNames.get(path)];
    return inodes.flatMap((inode) => {
      if (inode === undefined) return [undefined];
      const { seen, synced } = inode;
      const half = Math.floor((synced.length + seen.length) / 2);
      const zeros = Buffer.concat([synced, Buffer.alloc(seen.length - synced.length)]);
      const late = Buffer.from(zeros);
      seen.copy(late, half, half);
      return [seen, synced, seen.subarray(0, half), zeros, late];
    });
  }

  get files(): StateFiles {
    const operation = async <T>(run: () => Promise<T>): Promise<T> => {
      this.#look(this);
      return run().finally(() => this.#look(this));
    };
    return {
      ...nodeFiles,
      open: (path, flags, mode) =>
        operation(async () => {
          const handle = await nodeFiles.open(path, flags, mode);
          if (flags === 'r') return this.#directory(handle, operation);
          const inode = (flags !== 'w' && this.#names.get(`${path}`)) || {
            seen: Buffer.alloc(0),
            synced: Buffer.alloc(0),
          };
          this.#names.set(`${path}`, inode);
          return this.#file(handle, inode, operation);
        }),
      rename: (from, to) =>
        operation(async () => {
          await nodeFiles.rename(from, to);
          const inode = this.#names.get(`${from}`);
          if (inode !== undefined) this.#names.set(`${to}`, inode);
          this.#names.delete(`${from}`);
        }),
    };
  }

  #directory(handle: nodeFiles.FileHandle, operation: (run: () => Promise<void>) => Promise<void>) {
    const sync = handle.sync.bind(handle);
    return Object.assign(handle, {
      sync: () =>
        operation(async () => {
          await sync();
          this.#syncedNames = new Map(this.#names);
        }),
    });
  }

  #file(handle: nodeFiles.FileHandle, inode: Inode, operation: <T>(run: () => Promise<T>) => Promise<T>) {
    const [write, datasync] = [handle.write.bind(handle), handle.datasync.bind(handle)];
    return Object.assign(handle, {
      write: (bytes: Uint8Array, from: number, length: number, at: number) =>
        operation(async () => {
          const done = await write(bytes, from, length, at);
          const part = bytes.subarray(from, from + done.bytesWritten);
          inode.seen = Buffer.concat([inode.seen.subarray(0, at), part, inode.seen.subarray(at + part.length)]);
          return done;
        }),
      datasync: () =>
        operation(async () => {
          const { seen } = inode;
          await datasync();
          inode.synced = seen;
        }),
    });
  }
}
