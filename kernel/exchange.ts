import { createAbortController } from './abort.ts';
import type { Budget } from './budget.ts';
import { type AbortSource, abort, ClientSignal, onAbort } from './client-signal.ts';
import { ContextHolder } from './context-key.ts';
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

/** One request on its way through the stages, as plugins see it: they can change nothing of it. */
export class Exchange extends ContextHolder {
  readonly #startedAt = performance.now();
  readonly #input: ExchangeInput;
  #parameters = none;
  #endpoint: Endpoint | undefined;
  /** Made when it is first asked for, or the client leaves. */
  #client: ClientSignal | undefined;
  #isDetached = false;
  #outcome: RequestOutcome | undefined;
  #budgets: Map<string, Budget> | undefined;
  #controller: AbortController | undefined;

  /** @param from whose context values are copied. */
  constructor(input: ExchangeInput, from?: ContextHolder) {
    super(from);
    this.#input = input;
    Object.freeze(input.headers);
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
      const controller = createAbortController();
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

  static readonly control = {
    /** Whether a value is a request: nothing else can pass for one. */
    isExchange: (value: unknown): value is Exchange => typeof value === 'object' && value !== null && #input in value,

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
    },

    /** Sets the outcome, unless it is known. @returns whether it was not. */
    conclude(exchange: Exchange, outcome: RequestOutcome): boolean {
      const isFirst = exchange.#outcome === undefined;
      exchange.#outcome ??= Object.freeze(outcome);
      return isFirst;
    },

    /** The same request once more: its input, endpoint, parameters and context values, with budgets and a client of its own. */
    fork(exchange: Exchange): Exchange {
      const fork = new Exchange(exchange.#input, exchange);
      fork.#parameters = exchange.#parameters;
      fork.#endpoint = exchange.#endpoint;
      return fork;
    },

    /** What plugins have left in this request, by their names. */
    budgets(exchange: Exchange): Map<string, Budget> {
      exchange.#budgets ??= new Map();
      return exchange.#budgets;
    },
  };
}

/** What the kernel alone may do to a request: plugins have no way to these functions. */
export const { control } = Exchange;
Reflect.deleteProperty(Exchange, 'control');

for (const { prototype } of [Exchange, ContextHolder]) {
  // No plugin makes another request with the constructor of the one that it has.
  Reflect.deleteProperty(prototype, 'constructor');
  Object.freeze(prototype);
}
