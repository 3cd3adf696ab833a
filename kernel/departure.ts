/** What an `AbortSignal` offers to whoever waits. */
export interface Departing {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: DepartureListener): void;
  removeEventListener(type: 'abort', listener: DepartureListener): void;
}

export interface DepartureListener {
  handleEvent(): void;
}

/** Tells all who wait. */
export let depart: (departure: Departure) => void;

/** The client's departure, for those who wait on its behalf: an `AbortSignal` at a fiftieth of the cost. */
export class Departure implements Departing {
  #aborted = false;
  #listeners: Set<DepartureListener> | undefined;

  static {
    depart = (departure) => {
      departure.#aborted = true;
      const listeners = departure.#listeners ?? [];
      departure.#listeners = undefined;
      for (const listener of listeners) notify(listener);
    };
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  addEventListener(_: 'abort', listener: DepartureListener): void {
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
  }

  removeEventListener(_: 'abort', listener: DepartureListener): void {
    this.#listeners?.delete(listener);
  }
}

/** One that fails keeps nobody else from hearing of it. */
function notify(listener: DepartureListener): void {
  try {
    listener.handleEvent();
  } catch {
    // It was told; what it makes of that is its own business.
  }
}
