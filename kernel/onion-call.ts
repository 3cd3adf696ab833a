import type { Charge } from './charge.ts';
import type { Exchange } from './exchange.ts';
import type { Inner } from './hooks.ts';
import type { Tap } from './tap.ts';
import type { ApiResponse, CallContext } from './values.ts';

/** One layer of an onion, as it was asked. */
export interface Layer {
  readonly tap: Tap;
  readonly value: unknown;
  readonly exchange: Exchange;
  readonly inner: Inner;
  readonly call: CallContext;
  readonly charge: Charge | undefined;
  /** Calls the layer once more: with another function, and on another exchange. */
  again(tap: Tap, exchange: Exchange): unknown;
}

type Work = (flight: OnionCall) => unknown;

let stateOf: (call: OnionCall) => { hasAsked: boolean; isOver: boolean };

/** What a function of an onion gets beside the stage's arguments; see `AroundCall` and `Flight`. */
export class OnionCall {
  readonly #layer: Layer;
  readonly #state = { hasAsked: false, isOver: false };

  constructor(layer: Layer) {
    this.#layer = layer;
  }

  static {
    stateOf = (call) => call.#state;
  }

  get signal(): AbortSignal {
    return this.#layer.call.signal;
  }

  get exchange(): Exchange {
    return this.#layer.exchange;
  }

  get next() {
    const { tap, value, inner, exchange } = this.#layer;
    const { contract, options, row } = tap;
    return (given?: unknown) =>
      this.#uncharged(async () => {
        const asked = given === undefined ? value : contract.input?.(given, [value, exchange]);
        const result = await inner(asked, exchange);
        if (row.returns === 'response') options.protect?.(result as ApiResponse);
        return result;
      });
  }

  get share() {
    const { tap, exchange, again } = this.#layer;
    return (key: string, work: Work) =>
      this.#uncharged(async () => {
        const fn = (_: unknown, __: unknown, flight: unknown) => work(flight as OnionCall);
        return tap.flights?.join(String(key), exchange, (fork) => again({ ...tap, fn }, fork));
      });
  }

  #uncharged(work: () => Promise<unknown>): Promise<unknown> {
    this.#state.hasAsked = true;
    const working = this.#working(work);
    // The plugin may not wait for it.
    working.catch(() => undefined);
    return working;
  }

  async #working(work: () => Promise<unknown>): Promise<unknown> {
    if (this.#state.isOver) throw new Error('the call has ended');
    const { charge } = this.#layer;
    return charge === undefined ? work() : charge.pause(work);
  }
}

Object.freeze(OnionCall.prototype);

/** The function has ended: what it asks from now on is refused. */
export function endCall(call: OnionCall): void {
  stateOf(call).isOver = true;
}

export function hasAsked(call: OnionCall | undefined): boolean {
  return call !== undefined && stateOf(call).hasAsked;
}
