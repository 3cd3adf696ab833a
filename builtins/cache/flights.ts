/** Ends the flight: with what everybody who waits gets, or with nothing when the leader failed. */
export type Land<T> = (result: T | undefined) => void;

/**
 * Work that several requests want at the same time and one of them does. Only a success is shared: when the leader fails
 * or leaves, one of those who waited leads instead.
 */
export class Flights<T> {
  readonly #flights = new Map<string, Promise<T | undefined>>();

  /**
   * Waits for whoever leads, or leads.
   *
   * @param leave resolves when the caller does not want to wait any longer; with nothing.
   * @returns the result of another's work; `undefined` when the caller left; or, for the leader, the function that it
   *   must call when its work has ended, however that was.
   */
  async join(key: string, leave: Promise<undefined>): Promise<T | Land<T> | undefined> {
    let left = false;
    const leaving = leave.then(() => {
      left = true;
      return undefined;
    });
    for (let flight = this.#flights.get(key); flight !== undefined; flight = this.#flights.get(key)) {
      const result = await Promise.race([flight, leaving]);
      if (left || result !== undefined) return result;
    }
    return this.#lead(key);
  }

  #lead(key: string): Land<T> {
    let land: Land<T> = () => undefined;
    const flight = new Promise<T | undefined>((resolve) => {
      land = resolve;
    });
    this.#flights.set(key, flight);
    return (result) => {
      this.#flights.delete(key);
      land(result);
    };
  }
}
