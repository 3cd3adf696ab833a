import { randomBytes } from 'node:crypto';
import { Departure } from './departure.ts';
import type { Endpoint } from './endpoint.ts';
import type { Ledger } from './ledger.ts';
import { Slot, Slotted } from './slot.ts';

export type Hex = `0x${string}`;
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type Parameters = Readonly<Record<string, Json>>;

/** The client's address where a plugin knows better than the socket (a trusted proxy in front). */
export const clientAddress = new Slot<string>('clientAddress');

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

/** One HTTP request on its way through the stages. */
export class Exchange extends Slotted {
  readonly requestId: Hex = randomId();
  readonly startedAt = performance.now();
  readonly method: string;
  readonly route: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly socketAddress: string;
  /** The parameters exactly as the client sent them; frozen. */
  parameters: Parameters = none;
  #ledgers: Map<string, Ledger> | undefined;
  /** The client's disconnect, as {@link signal} tells it, for what runs in every request. */
  readonly departure = new Departure();
  #endpoint: Endpoint | undefined;
  #controller: AbortController | undefined;
  #gone = false;
  #detached = false;

  constructor(input: ExchangeInput) {
    super();
    this.method = input.method;
    this.route = input.route;
    this.headers = Object.freeze(input.headers);
    this.socketAddress = input.socketAddress;
  }

  /** The client's IP address. */
  get ip(): string {
    return clientAddress.get(this) ?? this.socketAddress;
  }

  /** Budgets that plugins have left in this request, by plugin name. */
  get ledgers(): Map<string, Ledger> {
    this.#ledgers ??= new Map();
    return this.#ledgers;
  }

  /** @throws before the request is resolved. */
  get endpoint(): Endpoint {
    if (this.#endpoint === undefined) throw new Error('the request is not resolved yet');
    return this.#endpoint;
  }

  get resolved(): Endpoint | undefined {
    return this.#endpoint;
  }

  resolveTo(endpoint: Endpoint): void {
    this.#endpoint = endpoint;
  }

  /** Aborts when the client disconnects, unless the work was detached from it. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.abandoned) this.#controller.abort();
    return this.#controller.signal;
  }

  /** True when nobody waits for the outcome any more. */
  get abandoned(): boolean {
    return this.#gone && !this.#detached;
  }

  /** The client is gone. */
  disconnect(): void {
    this.#gone = true;
    if (this.#detached) return;
    this.departure.abort();
    this.#controller?.abort();
  }

  /** Unties the rest of the work from the client's connection. */
  detach(): void {
    this.#detached = true;
  }

  /** Milliseconds since the request arrived. */
  elapsed(): number {
    return performance.now() - this.startedAt;
  }
}
