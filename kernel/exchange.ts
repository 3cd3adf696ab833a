import { type AbortSource, abort, type Charge, ClientSignal, onAbort } from './charge.ts';
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

type Values = Map<ContextKey<unknown>, unknown>;

const none: Parameters = Object.freeze({});

/** The values that are left on a request, and the request that it was forked from. */
let leftOn: (exchange: Exchange) => { values: Values; origin: Exchange | undefined };

/** One request on its way through the stages, as plugins see it: they can change nothing of it. */
export class Exchange {
  readonly #startedAt = performance.now();
  readonly #input: ExchangeInput;
  readonly #origin: Exchange | undefined;
  #parameters = none;
  #endpoint: Endpoint | undefined;
  /** Made when it is first asked for, or the client leaves. */
  #client: ClientSignal | undefined;
  #isDetached = false;
  #outcome: RequestOutcome | undefined;
  #charges: Map<string, Charge> | undefined;
  #controller: AbortController | undefined;
  /** Made when somebody first leaves one. */
  #values: Values | undefined;

  /** @param from the request that it is a fork of. */
  constructor(input: ExchangeInput, from?: Exchange) {
    this.#input = input;
    this.#origin = from;
    Object.freeze(input.headers);
    if (from !== undefined) {
      this.#parameters = from.#parameters;
      this.#endpoint = from.#endpoint;
      this.#values = from.#values && new Map(from.#values);
    }
    // An own property would hide what the kernel reads.
    Object.freeze(this);
  }

  get requestId(): Hex {
    return this.#input.requestId;
  }

  get method(): string {
    return this.#input.method;
  }

  get route(): string {
    return this.#input.route;
  }

  get headers(): Readonly<Record<string, string | undefined>> {
    return this.#input.headers;
  }

  get socketAddress(): string {
    return this.#input.socketAddress;
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
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      onAbort(this.client, () => controller.abort());
    }
    return this.#controller.signal;
  }

  /** The client's disconnect, as {@link signal} tells it, for what runs in every request. */
  get client(): AbortSource {
    this.#client ??= new ClientSignal();
    return this.#client;
  }

  /** True when nobody waits for the outcome any more. */
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

  static {
    leftOn = (exchange) => {
      if (!(#input in exchange))
        throw new Error(
          "the context key is of another copy of the SDK than the service's: no plugin may bundle the SDK",
        );
      exchange.#values ??= new Map();
      return { values: exchange.#values, origin: exchange.#origin };
    };
  }

  static readonly control = {
    isExchange: (value: unknown): value is Exchange => typeof value === 'object' && value !== null && #input in value,

    resolveTo: (exchange: Exchange, endpoint: Endpoint) => void (exchange.#endpoint = endpoint),

    /** @param parameters frozen. */
    receive: (exchange: Exchange, parameters: Parameters) => void (exchange.#parameters = parameters),

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
    },

    /** Sets the outcome, unless it is known. @returns whether it was not. */
    conclude(exchange: Exchange, outcome: RequestOutcome): boolean {
      const isFirst = exchange.#outcome === undefined;
      exchange.#outcome ??= Object.freeze(outcome);
      return isFirst;
    },

    /** The same request once more: its input, endpoint, parameters and context values, with budgets and a client of its own. */
    fork: (exchange: Exchange) => new Exchange(exchange.#input, exchange),

    /** What plugins have left of their budgets in this request, by their names. */
    charges(exchange: Exchange): Map<string, Charge> {
      exchange.#charges ??= new Map();
      return exchange.#charges;
    },
  };
}

/** What the kernel and its host may do to a request. */
export const { control } = Exchange;

export interface ContextKeyOptions {
  /** Whether the first value stays: for values that decide where a request goes, under a key that other plugins know. */
  readonly once?: boolean;
  /**
   * Whether the request's line in the log has the value, as a field of the key's name: no secret then. What is left on a fork of a
   * request stands on that request, too.
   */
  readonly logged?: boolean;
}

/**
 * A typed key for what one plugin leaves on a request for another, or for its own later stages. Whoever holds the key can
 * read and write; nobody else can reach the value, and it is gone with the request.
 */
export class ContextKey<T> {
  readonly name: string;
  readonly #options: ContextKeyOptions;

  constructor(name: string, options: ContextKeyOptions = {}) {
    this.name = name;
    this.#options = options;
  }

  /** Adds what the log shows of a request to its fields; those that are there stay. */
  static addLogged(exchange: Exchange, fields: Record<string, unknown>): void {
    for (const [key, value] of leftOn(exchange).values) if (key.#options.logged) fields[key.name] ??= value;
  }

  get(exchange: Exchange): T | undefined {
    // Nobody else writes under this key.
    return leftOn(exchange).values.get(this) as T | undefined;
  }

  /** @throws when something was left already that must stay. */
  set(exchange: Exchange, value: T): void {
    const { values, origin } = leftOn(exchange);
    if (this.#options.once && values.has(this)) throw new Error(`context key "${this.name}" has a value already`);
    values.set(this, value);
    if (this.#options.logged && origin !== undefined) this.set(origin, value);
  }

  /** @throws when nothing was left: a fault in the order of the plugins, never the client's. */
  require(exchange: Exchange): T {
    const value = this.get(exchange);
    if (value === undefined) throw new Error(`context key "${this.name}" has no value`);
    return value;
  }
}
