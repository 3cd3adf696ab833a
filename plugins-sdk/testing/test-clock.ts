/** A clock that a test moves. */
export class TestClock {
  /** Epoch milliseconds. */
  readonly now: () => number;
  #ahead = 0;

  constructor(source: () => number = Date.now) {
    this.now = () => source() + this.#ahead;
  }

  /** @throws TypeError unless it is a time to come. */
  advance(milliseconds: number): void {
    if (!(Number.isFinite(milliseconds) && milliseconds > 0))
      throw new TypeError(`advance takes milliseconds, more than 0: not ${milliseconds}`);
    this.#ahead += milliseconds;
  }
}
