/** Counts what is under way, for those who wait for the end of all of it. */
export class WaitGroup {
  #count = 0;
  #waiting: (() => void)[] = [];

  readonly add = (): void => {
    this.#count += 1;
  };

  readonly done = (): void => {
    this.#count -= 1;
    if (this.#count === 0) for (const resolve of this.#waiting.splice(0)) resolve();
  };

  /** Counts work while it is under way. */
  async track<T>(work: () => T | Promise<T>): Promise<T> {
    this.add();
    try {
      return await work();
    } finally {
      this.done();
    }
  }

  /** Resolves when nothing is under way. */
  async wait(): Promise<void> {
    while (this.#count > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}
