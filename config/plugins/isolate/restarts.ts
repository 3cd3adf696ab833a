/** Processes that may be started at once, and then one each second. */
const BURST = 5;
const PERIOD_MS = 1000;
const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 30_000;

/** How long the next start has to wait: longer and longer only when no process gets ready, since that may never change. */
export class Restarts {
  #tokens = BURST;
  #since = performance.now();
  #failures = 0;

  /** A process is started after that many milliseconds. */
  delay(): number {
    const now = performance.now();
    this.#tokens = Math.min(BURST, this.#tokens + (now - this.#since) / PERIOD_MS) - 1;
    this.#since = now;
    const backoff = this.#failures === 0 ? 0 : FIRST_BACKOFF_MS * 2 ** Math.min(this.#failures - 1, 10);
    return Math.max(0, -this.#tokens * PERIOD_MS, Math.min(backoff, LONGEST_BACKOFF_MS));
  }

  /** @param ready whether a process got ready, or ended before. */
  note(ready: boolean): void {
    this.#failures = ready ? 0 : this.#failures + 1;
  }
}
