import type { Departing } from '../../plugins-sdk/index.ts';

/**
 * How the work of one who leads has ended: with what all get, with a failure that those who waited may share, or without
 * either, because the client left.
 */
export type Landing<T, F> = { readonly result: T } | { readonly failure: F } | undefined;

/** What became of somebody who joined a flight. */
export type Turn<T, F> =
  | { readonly result: T }
  | { readonly failure: F }
  /** Is to do the work, and to call `land` once when it has ended, however that was. */
  | {
      readonly land: (landing: Landing<T, F>) => void;
      /** Milliseconds of waiting for others that were in vain. */
      readonly waited: number;
    };

/** Failures of others after which there is nothing to hope for. */
const MOST_FAILURES = 2;

/** A longer delay would make Node's timers fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** How long somebody has waited, and for what. */
interface Patience {
  readonly since: number;
  /** Milliseconds that its own work may take. */
  readonly patience: number;
  /** Of others, that it has seen. */
  failures: number;
}

interface Waiter<T, F> extends Patience {
  readonly resume: (turn: Turn<T, F>) => void;
}

/**
 * Work that several requests want at the same time and one of them does (single flight).
 *
 * A success is shared by all. When the client of the one who leads goes away, the next in line leads. A failure is shared
 * by those who have seen another one or have waited for more than half of the time that their own work may take; of the
 * rest the first leads. So no more than two of those who come together fail by themselves, and nobody waits for others
 * and for its own work longer than twice that time.
 */
export class Flights<T, F> {
  readonly #flights = new Map<string, Flight<T, F>>();

  /**
   * @param patience milliseconds that the caller's own work may take.
   * @param departure aborts when the caller does not want to wait any longer.
   * @returns undefined when the caller has left.
   */
  join(key: string, patience: number, departure: Departing): Turn<T, F> | Promise<Turn<T, F> | undefined> {
    const known = this.#flights.get(key);
    if (known !== undefined) return known.wait(patience, departure);
    const flight: Flight<T, F> = new Flight(() => {
      // Another one may have begun since.
      if (this.#flights.get(key) === flight) this.#flights.delete(key);
    });
    this.#flights.set(key, flight);
    return flight.lead(0);
  }
}

class Flight<T, F> {
  readonly #waiters = new Set<Waiter<T, F>>();
  readonly #over: () => void;
  /** How many lead: more than one when the work of one takes very long. */
  #leaders = 0;
  #late: NodeJS.Timeout | undefined;

  constructor(over: () => void) {
    this.#over = over;
  }

  lead(waited: number): Turn<T, F> {
    this.#leaders += 1;
    let underWay = true;
    const land = (landing: Landing<T, F>) => {
      if (!underWay) return;
      underWay = false;
      this.#leaders -= 1;
      this.#land(landing);
    };
    return { land, waited };
  }

  async wait(patience: number, departure: Departing): Promise<Turn<T, F> | undefined> {
    if (departure.aborted) return undefined;
    let leave: () => void = () => undefined;
    const turn = new Promise<Turn<T, F> | undefined>((resolve) => {
      const waiter = { since: performance.now(), patience, failures: 0, resume: resolve };
      this.#waiters.add(waiter);
      leave = () => {
        this.#waiters.delete(waiter);
        resolve(undefined);
      };
    });
    this.#expect(patience);
    const departed = { handleEvent: leave };
    departure.addEventListener('abort', departed);
    try {
      return await turn;
    } finally {
      departure.removeEventListener('abort', departed);
    }
  }

  #land(landing: Landing<T, F>): void {
    if (landing !== undefined && 'result' in landing) {
      this.#share(landing, () => true);
      this.#end();
      return;
    }
    if (landing !== undefined) for (const waiter of this.#waiters) waiter.failures += 1;
    if (this.#leaders > 0) return;
    if (landing !== undefined) this.#share(landing, isHopeless);
    if (this.#waiters.size > 0) this.#promote();
    else this.#end();
  }

  #share(turn: Turn<T, F>, whom: (waiter: Waiter<T, F>) => boolean): void {
    for (const waiter of this.#waiters) {
      if (!whom(waiter)) continue;
      this.#waiters.delete(waiter);
      waiter.resume(turn);
    }
  }

  /** The first in line leads. */
  #promote({ afresh = false } = {}): void {
    const [next] = this.#waiters;
    if (next === undefined) return;
    this.#waiters.delete(next);
    next.resume(this.lead(afresh ? 0 : performance.now() - next.since));
  }

  /**
   * No call upstream, with the wait for its slot, takes longer than twice the patience. Other work may, and may never end:
   * then one more of those who wait does it, too.
   */
  #expect(patience: number): void {
    this.#late ??= setTimeout(
      () => {
        this.#late = undefined;
        this.#promote({ afresh: true });
        if (this.#waiters.size > 0) this.#expect(patience);
      },
      Math.min(2 * patience, LONGEST_TIMER),
    );
  }

  #end(): void {
    clearTimeout(this.#late);
    this.#over();
  }
}

function isHopeless({ failures, since, patience }: Patience): boolean {
  return failures >= MOST_FAILURES || performance.now() - since > patience / 2;
}
