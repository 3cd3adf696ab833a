import { type AbortSource, onAbort } from './client-signal.ts';
import { control, type Exchange } from './exchange.ts';
import { asRefusal, refusals } from './refusal.ts';
import type { Awaitable } from './values.ts';
import type { WaitGroup } from './wait-group.ts';

/** Work under way, for those who wait for it. */
interface Flight {
  readonly exchange: Exchange;
  result: Promise<unknown> | undefined;
  waiting: number;
}

/**
 * Work that requests share while it is under way, as Go's `singleflight` does. It belongs to none of them: it runs on a forked
 * exchange, and ends when nobody waits any more.
 */
export class Flights {
  readonly #running: WaitGroup;
  readonly #flights = new Map<string, Flight>();

  /** @param running counts the work also when nobody waits for it any more: it may have to tidy up. */
  constructor(running: WaitGroup) {
    this.#running = running;
  }

  /** @param work begins at once, unless the same is under way. @throws Refusal 499 when the client leaves first. */
  async join(key: string, exchange: Exchange, work: (fork: Exchange) => Awaitable<unknown>): Promise<unknown> {
    const flight = this.#flights.get(key) ?? this.#begin(key, exchange, work);
    if (flight.result === undefined || flight.exchange === exchange) throw new Error('shared work waits for itself');
    flight.waiting += 1;
    try {
      return await this.#unlessGone(exchange.client, flight.result);
    } finally {
      flight.waiting -= 1;
      if (flight.waiting === 0 && this.#forget(key, flight)) control.disconnect(flight.exchange);
    }
  }

  #begin(key: string, exchange: Exchange, work: (fork: Exchange) => Awaitable<unknown>): Flight {
    const flight: Flight = { exchange: control.fork(exchange), result: undefined, waiting: 0 };
    this.#flights.set(key, flight);
    flight.result = this.#running.track(() => work(flight.exchange)).finally(() => this.#forget(key, flight));
    return flight;
  }

  /** @returns whether it was under way. */
  #forget(key: string, flight: Flight): boolean {
    return this.#flights.get(key) === flight && this.#flights.delete(key);
  }

  #unlessGone(client: AbortSource, result: Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const stay = onAbort(client, () => reject(asRefusal(refusals.abandoned())));
      result.finally(stay).then(resolve, reject);
    });
  }
}
