/** Runs reloads one after the other, so that the files that were read last win. Calls that come while one waits to begin share it. */
export class ReloadQueue<T> {
  #last: Promise<unknown> = Promise.resolve();
  #waiting: Promise<T> | undefined;

  run(reload: () => Promise<T>): Promise<T> {
    const begin = () => {
      this.#waiting = undefined;
      return reload();
    };
    const waiting = this.#waiting ?? this.#last.then(begin, begin);
    this.#waiting = waiting;
    this.#last = waiting;
    return waiting;
  }
}
