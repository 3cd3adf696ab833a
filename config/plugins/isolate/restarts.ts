/** Processes that may be started at once, and then one each second. */
const BURST = 5;
const PERIOD = 1000;
const FIRST_BACKOFF = 250;
const LONGEST_BACKOFF = 30_000;

/** How long the next start has to wait: longer and longer only when no process gets ready, since that may never change. */
export class Restarts {
  #tokens = BURST;
  #since = performance.now();
  #failures = 0;

  /** A process is started after that many milliseconds. */
  delay(): number {
    const now = performance.now();
    this.#tokens = Math.min(BURST, this.#tokens + (now - this.#since) / PERIOD) - 1;
    this.#since = now;
    const backoff = this.#failures === 0 ? 0 : FIRST_BACKOFF * 2 ** Math.min(this.#failures - 1, 10);
    return Math.max(0, -this.#tokens * PERIOD, Math.min(backoff, LONGEST_BACKOFF));
  }

  /** @param ready whether a process got ready, or ended before. */
  note(ready: boolean): void {
    this.#failures = ready ? 0 : this.#failures + 1;
  }
}
