import type { ProcessStats } from './process-stats.ts';

/** Milliseconds between two looks at what processes have waited. */
const SAMPLE_INTERVAL_MS = 5;
/** Of any time a quarter counts: nobody waits for longer than four times a budget. */
const LEAST_CHARGED = 0.25;

type Waits = Pick<ProcessStats, 'waited' | 'waits'>;

/** The time that a plugin is charged for: without that in which its process waited for a processor. */
export class PluginClock {
  readonly #time: () => number;
  #process: Waits | undefined;
  #lookedAt: number;
  #waited = 0;
  #uncharged = 0;
  #last = 0;

  constructor(time: () => number = () => performance.now()) {
    this.#time = time;
    this.#lookedAt = time();
  }

  /** @param process in which the plugin works from now on. */
  watch(process: Waits | undefined): void {
    this.#process = process;
    this.#waited = this.#total();
  }

  /** Milliseconds, of which only differences mean anything. It never goes back. */
  now(): number {
    const now = this.#time();
    const elapsed = now - this.#lookedAt;
    if (elapsed >= SAMPLE_INTERVAL_MS) {
      const before = this.#waited;
      this.#lookedAt = now;
      this.#waited = this.#total();
      this.#uncharged += Math.min(Math.max(0, this.#waited - before), elapsed * (1 - LEAST_CHARGED));
    }
    this.#last = Math.max(this.#last, now - this.#uncharged);
    return this.#last;
  }

  #total(): number {
    return (this.#process?.waited() ?? 0) + (this.#process?.waits() ?? 0);
  }
}
