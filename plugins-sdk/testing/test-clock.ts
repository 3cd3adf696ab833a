/** A clock that a test moves. */
export class TestClock {
  /** Returns epoch milliseconds. */
  readonly now: () => number;
  #ahead = 0;

  constructor(source: () => number = Date.now) {
    this.now = () => source() + this.#ahead;
  }

  /** Moves the clock forward. @throws TypeError unless `milliseconds` is finite and more than 0. */
  advance(milliseconds: number): void {
    if (!(Number.isFinite(milliseconds) && milliseconds > 0))
      throw new TypeError(`advance takes milliseconds, more than 0: not ${milliseconds}`);
    this.#ahead += milliseconds;
  }
}
