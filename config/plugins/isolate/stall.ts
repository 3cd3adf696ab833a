import type { ProcessStats } from './process-stats.ts';

/** Milliseconds after which a plugin's process that does not answer is waited for no longer, at most. */
const LONGEST_STALL_MS = 50;

export interface Watched {
  /** How many frames have come from it. */
  readonly frames: number;
  /** Whether it owes an answer, or a sign of life. */
  readonly owes: boolean;
  /** Whether somebody waits for the answer. */
  readonly isWaitedFor: boolean;
  /** Has it answer at once, if it can. */
  ping(): void;
  stalled(): void;
}

/**
 * Tells when a process cannot answer: it has run for as long as the patience without a word, although it was asked for one.
 * That is measured in time on a processor, which a busy machine does not make longer. A process that waits in a system call, which
 * a process with something to read does not, or was stopped, is measured by the clock.
 */
export class StallWatch {
  readonly #stats: ProcessStats;
  readonly #patience: number;
  readonly #watched: Watched;
  #timer: NodeJS.Timeout | undefined;
  #frames = -1;
  #cpu = 0;
  #since = 0;
  #pingedAt: number | undefined;
  #rests = 0;

  constructor(stats: ProcessStats, budget: number, watched: Watched) {
    this.#stats = stats;
    this.#patience = Math.min(LONGEST_STALL_MS, budget / 4);
    this.#watched = watched;
  }

  /** To be called with each order: it ends by itself when nothing is owed. */
  begin(): void {
    if (this.#timer !== undefined) return;
    this.#frames = -1;
    this.#look();
    this.#timer = setInterval(() => this.#look(), Math.max(2, this.#patience / 4));
    this.#timer.unref();
  }

  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    const now = performance.now();
    const cpu = this.#stats.cpu();
    this.#stats.waits();
    const frames = this.#watched.frames;
    if (!this.#watched.owes) this.end();
    else if (frames !== this.#frames)
      [this.#frames, this.#cpu, this.#since, this.#pingedAt, this.#rests] = [frames, cpu, now, undefined, 0];
    else if (this.#pingedAt !== undefined) {
      const spins = this.#watched.isWaitedFor && this.#spins(cpu - this.#cpu, now - this.#since);
      if (spins || this.#hangs(now)) this.#confirm();
    } else if (Math.max(cpu - this.#cpu, now - this.#since) >= this.#patience / 2) {
      this.#pingedAt = now;
      this.#watched.ping();
    }
  }

  /** What it wrote may wait to be read. */
  #confirm(): void {
    const before = this.#watched.frames;
    setImmediate(() => {
      if (this.#timer !== undefined && this.#watched.frames === before) this.#watched.stalled();
    });
  }

  /** On a busy machine it gets little of a processor, and calls behind it wait for long: a part of the patience has to do. */
  #spins(used: number, elapsed: number): boolean {
    return used >= this.#patience || (elapsed >= 2 * this.#patience && used >= this.#patience / 4);
  }

  #hangs(now: number): boolean {
    if (now - (this.#pingedAt ?? now) < LONGEST_STALL_MS) return false;
    this.#rests = this.#stats.look().rests ? this.#rests + 1 : 0;
    return this.#rests >= 3;
  }
}
