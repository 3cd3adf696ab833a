import { type AbortSource, abort, type Budget, Charge, ClientSignal, controllerOf, onAbort } from './charge.ts';
import { asRefusal, refusals } from './refusal.ts';
import type { Endpoint, Hex, Parameters, RequestOutcome } from './values.ts';

/** The facts of an HTTP request that an exchange starts with. */
export interface ExchangeInput {
  /** 32 random bytes. */
  readonly requestId: Hex;
  readonly method: string;
  /** The route's pattern, never the path as sent: paths may carry bearer secrets. */
  readonly route: string;
  /** Headers by lower-case name; repeated ones are joined as node joins them. */
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
  /** Private, so that a log which is given the exchange shows no credentials. */
  readonly #headers: ExchangeInput['headers'];
  readonly #startedAt = performance.now();
  readonly #origin: Exchange | undefined;
  readonly #charges: Charge[] = [];
  #parameters = none;
  #endpoint: Endpoint | undefined;
  /** Made on first use, or when the client leaves. */
  #client: ClientSignal | undefined;
  #controller: AbortController | undefined;
  #isDetached = false;
  #outcome: RequestOutcome | undefined;
  #contextValues: Map<object, unknown> | undefined;

  /** @param origin the exchange that this one is a fork of. */
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
    }
    // Otherwise a plugin could shadow members that the kernel reads.
    Object.freeze(this);
  }

  get headers(): ExchangeInput['headers'] {
    return this.#headers;
  }

  /** The parameters exactly as the client sent them; frozen. */
  get parameters(): Parameters {
    return this.#parameters;
  }

  /** The endpoint that is asked. @throws Error before the request is resolved. */
  get endpoint(): Endpoint {
    if (this.#endpoint === undefined) throw new Error('the request is not resolved yet');
    return this.#endpoint;
  }

  /** The endpoint that is asked, or `undefined` before the request is resolved. */
  get resolved(): Endpoint | undefined {
    return this.#endpoint;
  }

  /** A signal that aborts when the client disconnects, unless the work is detached from it. */
  get signal(): AbortSignal {
    this.#controller ??= controllerOf(this.clientSignal);
    return this.#controller.signal;
  }

  /** A cheaper form of {@link signal}, for code that runs in every request. */
  get clientSignal(): AbortSource {
    this.#client ??= new ClientSignal();
    return this.#client;
  }

  /** True once the client has left, unless the work is detached; of a fork, once every request that shares its work has. */
  get abandoned(): boolean {
    return this.#client?.aborted ?? false;
  }

  /** Whether the work goes on without the client's connection. Its result is then in no response. */
  get detached(): boolean {
    return this.#isDetached;
  }

  /** How the request ended, once that is certain. If a mode responds first and works later, that is after the response. */
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

    /** Sets the parameters that the client sent. @param parameters frozen. */
    receive(exchange: Exchange, parameters: Parameters): void {
      exchange.#parameters = parameters;
    },

    /** Marks the client as gone, and aborts the signals, unless the work is detached. */
    disconnect(exchange: Exchange): void {
      if (exchange.#isDetached) return;
      exchange.#client ??= new ClientSignal();
      abort(exchange.#client);
    },

    /** Detaches the rest of the work from the client's connection, even if that has closed already. */
    detach(exchange: Exchange): void {
      exchange.#isDetached = true;
      if (!exchange.abandoned) return;
      exchange.#client = undefined;
      exchange.#controller = undefined;
      for (const charge of exchange.#charges) charge.renewSignal();
    },

    /** Sets the outcome, unless one is set. @returns whether it was set by this call. */
    setOutcome(exchange: Exchange, outcome: RequestOutcome): boolean {
      const isFirst = exchange.#outcome === undefined;
      exchange.#outcome ??= Object.freeze(outcome);
      return isFirst;
    },

    /** Returns the values that plugins left on an exchange, by context key. @throws Error for anything else. */
    valuesOf(exchange: Exchange): ReadonlyMap<object, unknown> | undefined {
      if (#contextValues in exchange) return exchange.#contextValues;
      throw new Error("the context key is of another copy of the SDK than the service's: no plugin may bundle the SDK");
    },

    setValue(exchange: Exchange, key: object, value: unknown): void {
      exchange.#contextValues ??= new Map();
      exchange.#contextValues.set(key, value);
    },

    /** Returns the exchange that a fork was made from. */
    originOf: (exchange: Exchange): Exchange | undefined => exchange.#origin,

    /** Whether an exchange is the fork, or was forked from it. */
    isWithin: (exchange: Exchange, fork: Exchange): boolean =>
      exchange === fork || (exchange.#origin !== undefined && control.isWithin(exchange.#origin, fork)),

    /** Returns whether any plugin's budget is used up. */
    isSpent: (exchange: Exchange): boolean => exchange.#charges.some(({ remaining }) => remaining <= 0),

    /** Returns the charge of a plugin that was called in this request. */
    chargeOf: (exchange: Exchange, plugin: string): Charge | undefined =>
      exchange.#charges.find((charge) => charge.plugin === plugin),

    /** Returns a plugin's charge in this request. @param budget milliseconds. */
    charge(exchange: Exchange, plugin: string, budget: Budget): Charge {
      // Plugins are few, and most are called in every request: a map would cost more than the charges.
      for (const charge of exchange.#charges) if (charge.plugin === plugin) return charge;
      // Plugins do not get back the time that they have used.
      const origin = exchange.#origin && control.charge(exchange.#origin, plugin, budget);
      const charge = new Charge(budget, exchange, plugin, origin);
      exchange.#charges.push(charge);
      return charge;
    },
  };
}

/** The changes that the kernel and its host can make to an exchange. */
export const { control } = Exchange;
// Otherwise plugins would have it, as `exchange.constructor.control`.
Reflect.deleteProperty(Exchange, 'control');

/** A counter of tasks under way, by which others can wait for the end of all of them. */
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

  /** Starts work, and counts it until it ends. */
  track<T>(work: () => Promise<T>): Promise<T> {
    this.add();
    const working = work();
    working.then(this.done, this.done);
    return working;
  }

  /** Resolves when no task is under way. */
  async wait(): Promise<void> {
    while (this.#count > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}

/**
 * Work that requests for one key share while it is under way, as in Go's `singleflight`. It runs on a fork of the first
 * request's exchange, and thus on its budgets. It ends when the last waiting request has left.
 */
export class Flights {
  readonly #running: WaitGroup;
  readonly #flights = new Map<string, { fork: Exchange; result?: Promise<unknown>; waiting: number }>();

  /** @param running counts the work, even after the last request has left: it may still have to clean up. */
  constructor(running: WaitGroup) {
    this.#running = running;
  }

  /** Waits for a key's work, which begins now unless it is under way. @throws Refusal 499 when the client leaves first. */
  async join(key: string, exchange: Exchange, work: (fork: Exchange) => unknown, isAgain = false): Promise<unknown> {
    const flight = this.#flights.get(key) ?? { fork: new Exchange(exchange, exchange), waiting: 0 };
    const forget = () => this.#flights.get(key) === flight && this.#flights.delete(key);
    if (!this.#flights.has(key)) {
      this.#flights.set(key, flight);
      flight.result = this.#running.track(async () => work(flight.fork)).finally(forget);
    }
    const { fork, result } = flight;
    // There is no result yet while the work itself begins.
    if (result === undefined || control.isWithin(exchange, fork)) throw new Error('shared work waits for itself');
    flight.waiting += 1;
    try {
      return await new Promise((resolve, reject) => {
        const stay = onAbort(exchange.clientSignal, () => reject(asRefusal(refusals.abandoned())));
        result.finally(stay).then(resolve, reject);
      });
    } catch (error) {
      if (isAgain || control.originOf(fork) === exchange || exchange.abandoned || !control.isSpent(fork)) throw error;
      // A budget of the first request was used up. The others begin the work again on their own budgets, once.
      return this.join(key, exchange, work, true);
    } finally {
      flight.waiting -= 1;
      if (flight.waiting === 0 && forget()) control.disconnect(fork);
    }
  }
}
