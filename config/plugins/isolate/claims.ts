import { closeSync, existsSync, fstatSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CLAIM_BYTES, RETIRED_AT } from './protocol.ts';

/** Where Linux keeps files in memory, also where all others cannot be written. */
const MEMORY = '/dev/shm';

/**
 * A file without a name that a process and the service share. The process notes each call before it begins it, and then looks
 * whether it may. So each side writes before it reads, and of every call both know the same, even when it never ends.
 */
export class Claims {
  readonly fd: number;
  #last: number | undefined;

  constructor() {
    const folder = mkdtempSync(join(existsSync(MEMORY) ? MEMORY : tmpdir(), 'sdp-plugin-'));
    try {
      this.fd = openSync(join(folder, 'claims'), 'wx+', 0o600);
      writeSync(this.fd, Buffer.alloc(CLAIM_BYTES));
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  /** No call begins any more. */
  retire(): void {
    if (this.#last === undefined) writeSync(this.fd, Buffer.of(1), 0, 1, RETIRED_AT);
  }

  /** The last call that has begun. */
  get begun(): number {
    if (this.#last !== undefined) return this.#last;
    const bytes = Buffer.alloc(8);
    readSync(this.fd, bytes, 0, 8, 0);
    return bytes.readDoubleLE(0);
  }

  /** True if the plugin grew the shared file, which would use memory. */
  get isAbused(): boolean {
    return this.#last === undefined && fstatSync(this.fd).size !== CLAIM_BYTES;
  }

  /** To be called once the process has ended. */
  close(): void {
    if (this.#last !== undefined) return;
    this.#last = this.begun;
    closeSync(this.fd);
  }
}
