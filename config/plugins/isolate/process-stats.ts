import { closeSync, openSync, readSync } from 'node:fs';

/** What the system tells of a process. */
export interface Look {
  /** Bytes in memory. */
  readonly resident: number;
  /** Whether it waits in a system call: not for a processor. */
  readonly sleeps: boolean;
}

/** A process as Linux shows it; elsewhere nothing is known of it. */
export class ProcessStats {
  readonly #buffer = Buffer.alloc(4096);
  readonly #files = new Map<string, number>();
  readonly #pid: number;

  constructor(pid: number) {
    this.#pid = pid;
  }

  /** Milliseconds that its first thread has run; where that is unknown, a clock. */
  cpu(): number {
    const [nanoseconds = ''] = this.#read('schedstat')?.split(' ') ?? [];
    return nanoseconds === '' ? performance.now() : Number(nanoseconds) / 1e6;
  }

  look(): Look {
    const text = this.#read('status') ?? '';
    const [, state = ''] = /^State:\s+(\w)/m.exec(text) ?? [];
    const [, kilobytes = '0'] = /^VmRSS:\s+(\d+) kB/m.exec(text) ?? [];
    return { resident: Number(kilobytes) * 1024, sleeps: state === 'S' || state === 'D' };
  }

  close(): void {
    for (const fd of this.#files.values()) closeSync(fd);
    this.#files.clear();
  }

  #read(name: string): string | undefined {
    try {
      const fd = this.#files.get(name) ?? openSync(`/proc/${this.#pid}/${name}`, 'r');
      this.#files.set(name, fd);
      return this.#buffer.toString('latin1', 0, readSync(fd, this.#buffer, 0, this.#buffer.length, 0));
    } catch {
      // It has ended just now, or this is no Linux.
      return undefined;
    }
  }
}
