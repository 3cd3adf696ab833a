/** The facilitators of one auth object, in order of preference: the next one is asked where one is down. */
import type { HttpClient, Log } from '../../plugins-sdk/index.ts';
import { type Asked, Facilitator, FacilitatorFailure } from './facilitator.ts';
import { facilitatorsOf, type Terms } from './terms.ts';

/** The parts of the budget for facilitators: what is left lets this plugin refuse in its own words before its budget ends. */
const VERIFY_PART = 1 / 6;
export const SETTLE_PART = 2 / 3;
/** Milliseconds for which one that failed is asked last. */
const AVOIDED_MS = 30_000;

export class Facilitators {
  readonly #all: readonly Facilitator[];
  readonly #networks: ReadonlySet<string>;
  readonly #log: Log;

  /** @param budget milliseconds per request of the plugin. */
  constructor(terms: Terms, client: HttpClient, log: Log, budget: number) {
    const named = facilitatorsOf(terms);
    // Each may be asked whether a payment is good, one after the other; the settlement is one's alone.
    const timeouts = { verify: (budget * VERIFY_PART) / named.length, settle: budget * SETTLE_PART };
    this.#all = named.map((one) => new Facilitator(client, one, timeouts));
    this.#networks = new Set(terms.accepts.map((accept) => accept.network));
    this.#log = log;
  }

  /** @returns why the payment is not valid, if so, and who says it. @throws FacilitatorFailure of the last one, where none has a verdict. */
  verify(asked: Asked): Promise<{ readonly said: string | undefined; readonly by: Facilitator }> {
    return this.#first(async (by) => ({ said: await by.verify(asked), by }));
  }

  /**
   * Has one settle, first the one that has verified. Once it may have heard of it, nobody else is asked.
   * @param mayGoOn whether there is time to ask another one.
   * @throws FacilitatorFailure where it is not known whether the payment was settled.
   */
  settle(verifier: Facilitator, mayGoOn: () => boolean, asked: Asked) {
    const mayAskNext = ({ isUnsent }: FacilitatorFailure) => isUnsent && mayGoOn();
    return this.#first((one) => one.settle(asked), mayAskNext, verifier);
  }

  /** Tells operators of those that do not do what they count on. They may be away: that is no reason not to start. */
  inspect(isOver: () => boolean): void {
    for (const facilitator of this.#all) void this.#inspect(facilitator, isOver);
  }

  async #inspect(facilitator: Facilitator, isOver: () => boolean): Promise<void> {
    const { origin } = facilitator;
    try {
      const supported = new Set(await facilitator.networks());
      for (const network of this.#networks)
        if (!supported.has(network) && !supported.has('eip155:*'))
          this.#log.warn(`the facilitator at ${origin} does not say that it settles exact payments on ${network}`);
    } catch (error) {
      if (isOver()) return;
      const detail = error instanceof Error ? error.message : String(error);
      this.#log.warn(`the facilitator at ${origin} could not be asked what it supports`, { detail });
    }
  }

  async #first<T>(
    ask: (facilitator: Facilitator) => Promise<T>,
    mayAskNext: (failure: FacilitatorFailure) => boolean = () => true,
    preferred?: Facilitator,
  ): Promise<T> {
    const isAvoided = ({ failedAt }: Facilitator) => performance.now() - failedAt < AVOIDED_MS;
    const rank = (one: Facilitator) => (one === preferred ? -1 : Number(isAvoided(one)));
    const order = [...this.#all].sort((a, b) => rank(a) - rank(b));
    for (const one of order) {
      try {
        return await ask(one);
      } catch (error) {
        if (!(error instanceof FacilitatorFailure)) throw error;
        one.failedAt = performance.now();
        if (one === order.at(-1) || !mayAskNext(error)) throw error;
        this.#log.warn(`the facilitator at ${one.origin} failed: the next one is asked`, { detail: error.message });
      }
    }
    throw new Error('there is a facilitator');
  }
}
