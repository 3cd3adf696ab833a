/** Runs reloads one after the other, so that the files that were read last win. Calls that come while one waits to begin share it. */
export class ReloadQueue<T> {
  #last: Promise<T>;
  #waiting: Promise<T> | undefined;

  constructor(first: T) {
    this.#last = Promise.resolve(first);
  }

  /** What the latest reload comes to. */
  get last(): Promise<T> {
    return this.#last;
  }

  run(reload: () => Promise<T>): Promise<T> {
    const begin = () => {
      this.#waiting = undefined;
      return reload();
    };
    this.#waiting ??= this.#last.then(begin, begin);
    this.#last = this.#waiting;
    return this.#last;
  }
}
