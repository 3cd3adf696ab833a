import type { PaymentLedger } from './redeemed.ts';

/** Milliseconds that the clock of a chain may be ahead of this one. */
const AHEAD = 900_000;

/** What is known of payments for as long as the process lives, whatever configs it has had. */
export class PaymentMemory {
  readonly payments: PaymentLedger;
  /** When a payment was last remembered for that many milliseconds. */
  readonly #lives = new Map<number, number>();

  constructor(payments: PaymentLedger) {
    this.payments = payments;
  }

  /** A payment was redeemed and is remembered for `life` milliseconds from its block. */
  redeemed(life: number, now: number): void {
    this.#lives.set(life, now);
  }

  /**
   * Milliseconds from its block for which a payment may be accepted at most: one that was redeemed by a config that
   * remembered it for a shorter time may have been forgotten since.
   */
  lifeOf(minedAt: number): number {
    const lives = [...this.#lives].filter(([, latest]) => latest + AHEAD >= minedAt).map(([life]) => life);
    return Math.min(Number.POSITIVE_INFINITY, ...lives);
  }
}
