import type { PaymentStore } from './redeemed.ts';

/** What is known of payments for as long as the process lives, whatever configs it has had. */
export class PaymentMemory {
  readonly payments: PaymentStore;
  /** The latest block of a payment that was remembered for that many milliseconds. */
  readonly #lives = new Map<number, number>();

  constructor(payments: PaymentStore) {
    this.payments = payments;
  }

  /** A payment was redeemed and is remembered for `life` milliseconds from its block. */
  redeemed(life: number, minedAt: number): void {
    this.#lives.set(life, Math.max(this.#lives.get(life) ?? 0, minedAt));
  }

  /**
   * Milliseconds from its block for which a payment may be accepted at most. An earlier config may have redeemed it and remembered
   * it for a shorter time, so that it is forgotten by now.
   */
  lifeOf(minedAt: number): number {
    const lives = [...this.#lives].filter(([, latest]) => latest >= minedAt).map(([life]) => life);
    return Math.min(Number.POSITIVE_INFINITY, ...lives);
  }
}
