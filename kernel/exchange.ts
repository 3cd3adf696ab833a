import { createAbortController } from './abort.ts';
import type { Budget } from './budget.ts';
import { type AbortSource, abort, ClientSignal } from './client-signal.ts';
import { ContextHolder } from './context-key.ts';
import type { Endpoint, Hex, Parameters } from './values.ts';

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

/** What of a request changes on its way. */
interface Progress {
  parameters: Parameters;
  endpoint: Endpoint | undefined;
  client: ClientSignal;
  detached: boolean;
  settled: boolean;
  budgets: Map<string, Budget> | undefined;
  controller: AbortController | undefined;
}

const none: Parameters = Object.freeze({});

let progressOf: (exchange: Exchange) => Progress;
let inputOf: (exchange: Exchange) => ExchangeInput;
let isExchange: (value: unknown) => value is Exchange;

/** One request on its way through the stages, as plugins see it: they can change nothing of it. */
export class Exchange extends ContextHolder {
  readonly #startedAt = performance.now();
  readonly #input: ExchangeInput;
  readonly #progress: Progress = {
    parameters: none,
    endpoint: undefined,
    client: new ClientSignal(),
    detached: false,
    settled: false,
    budgets: undefined,
    controller: undefined,
  };

  /** @param from whose context values are copied. */
  constructor(input: ExchangeInput, from?: ContextHolder) {
    super(from);
    this.#input = input;
    Object.freeze(input.headers);
    // An own property would hide what the kernel reads.
    Object.freeze(this);
  }

  static {
    progressOf = (exchange) => exchange.#progress;
    isExchange = (value): value is Exchange => typeof value === 'object' && value !== null && #progress in value;
    inputOf = (exchange) => exchange.#input;
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
    return this.#progress.parameters;
  }

  /** @throws before the request is resolved. */
  get endpoint(): Endpoint {
    const { endpoint } = this.#progress;
    if (endpoint === undefined) throw new Error('the request is not resolved yet');
    return endpoint;
  }

  get resolved(): Endpoint | undefined {
    return this.#progress.endpoint;
  }

  /** Aborts when the client disconnects, unless the work was detached from it. */
  get signal(): AbortSignal {
    const progress = this.#progress;
    if (progress.controller === undefined) {
      const controller = createAbortController();
      progress.controller = controller;
      if (this.abandoned) controller.abort();
      else progress.client.addEventListener('abort', { handleEvent: () => controller.abort() });
    }
    return progress.controller.signal;
  }

  /** The client's disconnect, as {@link signal} tells it, for what runs in every request. */
  get client(): AbortSource {
    return this.#progress.client;
  }

  /** True when nobody waits for the outcome any more. */
  get abandoned(): boolean {
    return this.#progress.client.aborted;
  }

  /** Milliseconds since the request arrived. */
  elapsed(): number {
    return performance.now() - this.#startedAt;
  }
}

for (const { prototype } of [Exchange, ContextHolder]) {
  // Nobody makes a request of his own of the one that he has.
  Reflect.deleteProperty(prototype, 'constructor');
  Object.freeze(prototype);
}

/** What the kernel alone may do to a request: plugins have no way to these functions. */
export const control = {
  /** Nothing else can pass for a request. */
  isExchange: (value: unknown): value is Exchange => isExchange(value),

  resolveTo(exchange: Exchange, endpoint: Endpoint): void {
    progressOf(exchange).endpoint = endpoint;
  },

  /** @param parameters frozen. */
  receive(exchange: Exchange, parameters: Parameters): void {
    progressOf(exchange).parameters = parameters;
  },

  /** The client is gone. */
  disconnect(exchange: Exchange): void {
    const { client, detached } = progressOf(exchange);
    if (!detached) abort(client);
  },

  /** Unties the rest of the work from the client's connection, also when that has ended. */
  detach(exchange: Exchange): void {
    const progress = progressOf(exchange);
    if (progress.client.aborted) Object.assign(progress, { client: new ClientSignal(), controller: undefined });
    progress.detached = true;
  },

  /** Its outcome becomes known. @returns whether it was not yet. */
  settle(exchange: Exchange): boolean {
    const progress = progressOf(exchange);
    if (progress.settled) return false;
    progress.settled = true;
    return true;
  },

  isSettled: (exchange: Exchange): boolean => progressOf(exchange).settled,

  /** The same request once more: its input, endpoint, parameters and context values, with budgets and a client of its own. */
  fork(exchange: Exchange): Exchange {
    const fork = new Exchange(inputOf(exchange), exchange);
    const { parameters, endpoint } = progressOf(exchange);
    Object.assign(progressOf(fork), { parameters, endpoint });
    return fork;
  },

  /** What plugins have left in this request, by their names. */
  budgets(exchange: Exchange): Map<string, Budget> {
    const progress = progressOf(exchange);
    progress.budgets ??= new Map();
    return progress.budgets;
  },
};
