import { type AbortSource, abort, Charge, ClientSignal, onAbort, signalOf } from './charge.ts';
import { asRefusal, refusals } from './refusal.ts';
import type { Endpoint, Hex, Parameters, RequestOutcome } from './values.ts';

export interface ExchangeInput {
  /** 32 random bytes. */
  readonly requestId: Hex;
  readonly method: string;
  /** The pattern of the route, never the path as sent: paths may carry bearer secrets. */
  readonly route: string;
  /** Lower-case names; repeated headers joined as node joins them. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly socketAddress: string;
}

const none: Parameters = Object.freeze({});

/** A request on its way through the stages, read-only. */
export class Exchange implements ExchangeInput {
  readonly requestId: Hex;
  readonly method: string;
  readonly route: string;
  readonly socketAddress: string;
  /** No property of its own: a log that is given the request shows no credentials. */
  readonly #headers: ExchangeInput['headers'];
  readonly #startedAt = performance.now();
  readonly #origin: Exchange | undefined;
  readonly #charges: Charge[] = [];
  #parameters = none;
  #endpoint: Endpoint | undefined;
  /** Made when it is first asked for, or the client leaves. */
  #client: ClientSignal | undefined;
  #controller: AbortController | undefined;
  #isDetached = false;
  #outcome: RequestOutcome | undefined;
  /** Made with the first value. */
  #contextValues: Map<object, unknown> | undefined;

  /** @param origin the request that it is a fork of. */
  constructor(input: ExchangeInput, origin?: Exchange) {
    this.requestId = input.requestId;
    this.method = input.method;
    this.route = input.route;
    this.#headers = Object.freeze(input.headers);
    this.socketAddress = input.socketAddress;
    this.#origin = origin;
    if (origin !== undefined) {
      this.#parameters = origin.#parameters;
      this.#endpoint = origin.#endpoint;
      this.#contextValues = origin.#contextValues && new Map(origin.#contextValues);
      // What plugins have used before, they do not get again.
      this.#charges = origin.#charges.map(({ total, plugin, remaining }) => new Charge(total, this, plugin, remaining));
    }
    // An own property would hide what the kernel reads.
    Object.freeze(this);
  }

  get headers(): ExchangeInput['headers'] {
    return this.#headers;
  }

  /** The parameters exactly as the client sent them; frozen. */
  get parameters(): Parameters {
    return this.#parameters;
  }

  /** @throws before the request is resolved. */
  get endpoint(): Endpoint {
    if (this.#endpoint === undefined) throw new Error('the request is not resolved yet');
    return this.#endpoint;
  }

  get resolved(): Endpoint | undefined {
    return this.#endpoint;
  }

  /** Aborts when the client disconnects, unless the work was detached from it. */
  get signal(): AbortSignal {
    this.#controller ??= signalOf(this.clientSignal);
    return this.#controller.signal;
  }

  /** The client's disconnect, as {@link signal} tells it, for what runs in every request. */
  get clientSignal(): AbortSource {
    this.#client ??= new ClientSignal();
    return this.#client;
  }

  /** True once the client, and all that share the work, have left. */
  get abandoned(): boolean {
    return this.#client?.aborted ?? false;
  }

  /** Whether its work goes on without the client's connection: what comes of it is in no response. */
  get detached(): boolean {
    return this.#isDetached;
  }

  /** How it ended, once that is certain. Where a mode answers first and works later, that may be after its response. */
  get outcome(): RequestOutcome | undefined {
    return this.#outcome;
  }

  /** Milliseconds since the request arrived. */
  elapsed(): number {
    return performance.now() - this.#startedAt;
  }

  static readonly control = {
    isExchange: (value: unknown): value is Exchange => typeof value === 'object' && value !== null && #outcome in value,

    resolveTo(exchange: Exchange, endpoint: Endpoint): void {
      exchange.#endpoint = endpoint;
    },

    /** @param parameters frozen. */
    receive(exchange: Exchange, parameters: Parameters): void {
      exchange.#parameters = parameters;
    },

    /** The client is gone. */
    disconnect(exchange: Exchange): void {
      if (exchange.#isDetached) return;
      exchange.#client ??= new ClientSignal();
      abort(exchange.#client);
    },

    /** Unties the rest of the work from the client's connection, also when that has ended. */
    detach(exchange: Exchange): void {
      exchange.#isDetached = true;
      if (!exchange.abandoned) return;
      exchange.#client = undefined;
      exchange.#controller = undefined;
      for (const charge of exchange.#charges) charge.renewSignal();
    },

    /** Sets the outcome, unless it is known. @returns whether it was not. */
    conclude(exchange: Exchange, outcome: RequestOutcome): boolean {
      const isFirst = exchange.#outcome === undefined;
      exchange.#outcome ??= Object.freeze(outcome);
      return isFirst;
    },

    /** Values that plugins left on it, by key. @throws TypeError for anything that is no exchange. */
    valuesOf: (exchange: Exchange): ReadonlyMap<object, unknown> | undefined => exchange.#contextValues,

    setValue(exchange: Exchange, key: object, value: unknown): void {
      exchange.#contextValues ??= new Map();
      exchange.#contextValues.set(key, value);
    },

    /** The request that it was forked from. */
    originOf: (exchange: Exchange): Exchange | undefined => exchange.#origin,

    /** Whether a plugin has nothing left of its budget. */
    isSpent: (exchange: Exchange): boolean => exchange.#charges.some(({ remaining }) => remaining <= 0),

    /** A plugin's remaining budget in this request, once it was called. @param total milliseconds, once it is. */
    charge(exchange: Exchange, plugin: string, total?: number): Charge | undefined {
      // Plugins are few, and most requests make all of their charges: a map would cost more than they do.
      for (const charge of exchange.#charges) if (charge.plugin === plugin) return charge;
      if (total === undefined) return undefined;
      const charge = new Charge(total, exchange, plugin);
      exchange.#charges.push(charge);
      return charge;
    },
  };
}

/** What the kernel and its host may do to a request. */
export const { control } = Exchange;

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
  track<T>(work: () => Promise<T>): Promise<T> {
    this.add();
    const working = work();
    working.then(this.done, this.done);
    return working;
  }

  /** Resolves when nothing is under way. */
  async wait(): Promise<void> {
    while (this.#count > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}

/**
 * Work that requests share while it is under way, as Go's `singleflight` does. It belongs to none of them, but for its budgets: it runs
 * on a forked exchange, and ends when the last waiting request has left.
 */
export class Flights {
  readonly #running: WaitGroup;
  readonly #flights = new Map<string, { fork: Exchange; result?: Promise<unknown>; waiting: number }>();

  /** @param running counts the work even after the last request has left: it may have to tidy up. */
  constructor(running: WaitGroup) {
    this.#running = running;
  }

  /** @param work begins at once, unless the same is under way. @throws Refusal 499 when the client leaves first. */
  async join(key: string, exchange: Exchange, work: (fork: Exchange) => unknown, isAgain = false): Promise<unknown> {
    const flight = this.#flights.get(key) ?? { fork: new Exchange(exchange, exchange), waiting: 0 };
    const forget = () => this.#flights.get(key) === flight && this.#flights.delete(key);
    if (!this.#flights.has(key)) {
      this.#flights.set(key, flight);
      flight.result = this.#running.track(async () => work(flight.fork)).finally(forget);
    }
    const { fork, result } = flight;
    if (result === undefined || fork === exchange) throw new Error('shared work waits for itself');
    flight.waiting += 1;
    try {
      return await new Promise((resolve, reject) => {
        const stay = onAbort(exchange.clientSignal, () => reject(asRefusal(refusals.abandoned())));
        result.finally(stay).then(resolve, reject);
      });
    } catch (error) {
      if (isAgain || control.originOf(fork) === exchange || exchange.abandoned || !control.isSpent(fork)) throw error;
      // The request that began it had no more left: others go on with their own budgets, once.
      return this.join(key, exchange, work, true);
    } finally {
      flight.waiting -= 1;
      if (flight.waiting === 0 && forget()) control.disconnect(fork);
    }
  }
}
