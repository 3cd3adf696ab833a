import { closeSync, openSync, readSync } from 'node:fs';

/** Milliseconds, more than from one of the system's looks at its processes to the next. */
const TICK_MS = 20;

/** What the system tells of a process. */
export interface Look {
  /** Bytes in memory. */
  readonly resident: number;
  /** Whether it neither has a processor nor waits for one: it waits in a system call, or was stopped. */
  readonly rests: boolean;
}

/** A process as Linux shows it; elsewhere nothing is known of it. */
export class ProcessStats {
  readonly #buffer = Buffer.alloc(4096);
  readonly #files = new Map<string, number>();
  readonly #pid: number;
  /** What the system said when it said something new, and when that was. */
  #times: string | undefined;
  #since = 0;

  constructor(pid: number) {
    this.#pid = pid;
  }

  /** Milliseconds that its first thread has run; where that is unknown, a clock. */
  cpu(): number {
    const times = this.#read('schedstat');
    return times === undefined ? performance.now() : Number(times.split(' ')[0]) / 1e6;
  }

  /** Milliseconds that its first thread has waited for a processor, without those since it got the last one. */
  waited(): number {
    return Number(this.#read('schedstat')?.split(' ')[1] ?? 0) / 1e6;
  }

  /** Milliseconds since which it waits for a processor, as far as these looks can tell. */
  waits(): number {
    const times = this.#read('schedstat');
    const now = performance.now();
    // One that runs is told of with each tick of the system.
    if (times === undefined || times !== this.#times || this.look().rests) this.#since = now;
    this.#times = times;
    return now - this.#since < TICK_MS ? 0 : now - this.#since;
  }

  look(): Look {
    const text = this.#read('status') ?? '';
    const [, state = ''] = /^State:\s+(\w)/m.exec(text) ?? [];
    const [, kilobytes = '0'] = /^VmRSS:\s+(\d+) kB/m.exec(text) ?? [];
    return { resident: Number(kilobytes) * 1024, rests: state !== '' && state !== 'R' };
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

/** The service itself. */
export const thisProcess = new ProcessStats(process.pid);
