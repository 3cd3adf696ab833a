/** Ends the flight: with what everybody who waits gets, or with nothing when the leader failed. */
export type Land<T> = (result: T | undefined) => void;

/** Flights that one caller waits for: its own wait must not grow with the failures of others. */
const MOST_WAITS = 2;

/**
 * Work that several requests want at the same time and one of them does. Only a success is shared: when the leader fails
 * or leaves, one of those who waited leads instead.
 */
export class Flights<T> {
  readonly #flights = new Map<string, Promise<T | undefined>>();

  /**
   * Waits for whoever leads, or leads.
   *
   * @param leave asked once there is something to wait for: resolves when the caller does not want to wait any longer.
   * @returns the result of another's work; for the leader, the function that it must call when its work has ended,
   *   however that was; or `undefined` when the caller has waited enough and is to do its work by itself.
   */
  async join(key: string, leave: () => Promise<undefined>): Promise<T | Land<T> | undefined> {
    let left = false;
    let leaving: Promise<undefined> | undefined;
    for (let waits = 0; ; waits++) {
      const flight = this.#flights.get(key);
      if (flight === undefined) return this.#lead(key);
      if (waits === MOST_WAITS) return undefined;
      leaving ??= leave().then(() => {
        left = true;
        return undefined;
      });
      const result = await Promise.race([flight, leaving]);
      if (left || result !== undefined) return result;
    }
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
