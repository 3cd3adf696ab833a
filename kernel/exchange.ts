import { randomBytes } from 'node:crypto';
import { type Departing, Departure, depart } from './departure.ts';
import type { Endpoint } from './endpoint.ts';
import type { Ledger } from './ledger.ts';
import { Slot, Slotted } from './slot.ts';

export type Hex = `0x${string}`;
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type Parameters = Readonly<Record<string, Json>>;

/** The client's address where a plugin knows better than the socket (a trusted proxy in front). */
export const clientAddress = new Slot<string>('clientAddress', { once: true });

export interface ExchangeInput {
  readonly method: string;
  /** The pattern of the route, never the path as sent: paths may carry bearer secrets. */
  readonly route: string;
  /** Lower-case names; repeated headers joined as node joins them. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly socketAddress: string;
}

const none: Parameters = Object.freeze({});

const ID_BYTES = 32;
/** Random bytes are drawn for many ids at once: one call to the generator costs more than a hundred ids. */
let pool = Buffer.alloc(0);
let used = 0;

/** 32 random bytes as `0x` hex. */
export function randomId(): Hex {
  if (used === pool.length) {
    pool = randomBytes(128 * ID_BYTES);
    used = 0;
  }
  used += ID_BYTES;
  return `0x${pool.toString('hex', used - ID_BYTES, used)}`;
}

/** What of a request changes on its way. */
interface Progress {
  parameters: Parameters;
  endpoint: Endpoint | undefined;
  gone: boolean;
  detached: boolean;
  ledgers: Map<string, Ledger> | undefined;
}

let progressOf: (exchange: Exchange) => Progress;
let leave: (exchange: Exchange) => void;

/** One HTTP request on its way through the stages, as plugins see it: they can change nothing of it. */
export class Exchange extends Slotted {
  readonly #requestId: Hex = randomId();
  readonly #startedAt = performance.now();
  readonly #input: ExchangeInput;
  readonly #departure = new Departure();
  readonly #progress: Progress = {
    parameters: none,
    endpoint: undefined,
    gone: false,
    detached: false,
    ledgers: undefined,
  };
  #controller: AbortController | undefined;

  constructor(input: ExchangeInput) {
    super();
    this.#input = input;
    Object.freeze(input.headers);
    // An own property would hide what the kernel reads.
    Object.freeze(this);
  }

  static {
    progressOf = (exchange) => exchange.#progress;
    leave = (exchange) => {
      depart(exchange.#departure);
      exchange.#controller?.abort();
    };
  }

  get requestId(): Hex {
    return this.#requestId;
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

  /** The client's IP address. */
  get ip(): string {
    return clientAddress.get(this) ?? this.socketAddress;
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
    this.#controller ??= new AbortController();
    if (this.abandoned) this.#controller.abort();
    return this.#controller.signal;
  }

  /** The client's disconnect, as {@link signal} tells it, for what runs in every request. */
  get departure(): Departing {
    return this.#departure;
  }

  /** True when nobody waits for the outcome any more. */
  get abandoned(): boolean {
    const { gone, detached } = this.#progress;
    return gone && !detached;
  }

  /** Milliseconds since the request arrived. */
  elapsed(): number {
    return performance.now() - this.#startedAt;
  }
}

for (const { prototype } of [Exchange, Slotted]) Object.freeze(prototype);

/** What the kernel alone may do to a request: plugins have no way to these functions. */
export const control = {
  resolveTo(exchange: Exchange, endpoint: Endpoint): void {
    progressOf(exchange).endpoint = endpoint;
  },

  /** @param parameters frozen. */
  receive(exchange: Exchange, parameters: Parameters): void {
    progressOf(exchange).parameters = parameters;
  },

  /** The client is gone. */
  disconnect(exchange: Exchange): void {
    const progress = progressOf(exchange);
    progress.gone = true;
    if (!progress.detached) leave(exchange);
  },

  /** Unties the rest of the work from the client's connection. */
  detach(exchange: Exchange): void {
    progressOf(exchange).detached = true;
  },

  /** Budgets that plugins have left in this request, by plugin name. */
  ledgers(exchange: Exchange): Map<string, Ledger> {
    const progress = progressOf(exchange);
    progress.ledgers ??= new Map();
    return progress.ledgers;
  },
};
