import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import type { Log } from '../../plugins-sdk/index.ts';
import { type Facilitator, FacilitatorFailure, type Settlement } from './facilitator.ts';

/** What is asked, and about whom. */
export type Asked = readonly [payload: PaymentPayload, requirements: PaymentRequirements, payer: string];

export interface Verdict {
  /** Why the payment is not valid. */
  readonly reason: string | undefined;
  /** Who said so. */
  readonly by: Facilitator;
}

/** Milliseconds for which one that failed is asked last. */
const AVOIDED_MS = 30_000;

/** Those who may verify and settle, in order of preference: the next one is asked where one is down. */
export class Facilitators {
  readonly all: readonly Facilitator[];
  readonly #log: Log;
  readonly #failedAt = new Map<Facilitator, number>();

  constructor(all: readonly Facilitator[], log: Log) {
    this.all = all;
    this.#log = log;
  }

  /** @throws FacilitatorFailure of the last one, where none has a verdict. */
  async verify(...asked: Asked): Promise<Verdict> {
    return this.#first(
      (by) => by.verify(...asked).then((reason) => ({ reason, by })),
      () => true,
    );
  }

  /**
   * Has one settle, first the one that has verified. Once it may have heard of it, nobody else is asked.
   * @param mayGoOn whether there is time to ask another one.
   * @throws FacilitatorFailure where it is not known whether the payment was settled.
   */
  async settle(verifier: Facilitator, mayGoOn: () => boolean, ...asked: Asked): Promise<Settlement> {
    return this.#first(
      (by) => by.settle(...asked),
      ({ isUnsent }) => isUnsent && mayGoOn(),
      verifier,
    );
  }

  async #first<T>(
    ask: (facilitator: Facilitator) => Promise<T>,
    mayAskNext: (failure: FacilitatorFailure) => boolean,
    preferred?: Facilitator,
  ): Promise<T> {
    const isAvoided = (one: Facilitator) => performance.now() - (this.#failedAt.get(one) ?? -AVOIDED_MS) < AVOIDED_MS;
    const rank = (one: Facilitator) => (one === preferred ? -1 : Number(isAvoided(one)));
    const order = [...this.all].sort((a, b) => rank(a) - rank(b));
    for (const [index, one] of order.entries()) {
      try {
        return await ask(one);
      } catch (error) {
        if (!(error instanceof FacilitatorFailure)) throw error;
        this.#failedAt.set(one, performance.now());
        if (index === order.length - 1 || !mayAskNext(error)) throw error;
        this.#log.warn(`the facilitator at ${one.origin} failed: the next one is asked`, { detail: error.message });
      }
    }
    throw new Error('there is a facilitator');
  }
}
