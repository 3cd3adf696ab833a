import { type Log, Refusal } from '../../plugins-sdk/index.ts';
import type { Mined } from './chain.ts';
import type { PaymentMemory } from './memory.ts';

export interface RedemptionsOptions {
  readonly memory: PaymentMemory;
  /** Milliseconds from its block for which any endpoint here accepts a payment. */
  readonly longestLife: number;
  /** Milliseconds of the Unix epoch. */
  now(): number;
  readonly log: Log;
}

/** The payment could not be looked up: no fault of the client's. */
export function unavailable(reason: string): Refusal {
  return new Refusal(401, 'Payment verification unavailable', { reason, fault: true });
}

function alreadyUsed(): Refusal {
  return new Refusal(401, 'Payment already used');
}

/** Redeems each payment once: reserves it, has it looked up, redeems it, and gives it back when the request is refused. */
export class Redemptions {
  readonly #options: RedemptionsOptions;

  constructor(options: RedemptionsOptions) {
    this.#options = options;
  }

  /**
   * @param verify looks the payment up while nobody else can redeem it.
   * @throws Refusal 401, and the payment is as it was.
   */
  async redeem(payment: string, verify: () => Promise<Mined>): Promise<void> {
    const { memory, longestLife, now } = this.#options;
    const { payments } = memory;
    await this.#reserve(payment);
    let confirmed = false;
    try {
      const { minedAt } = await verify();
      if (now() > minedAt + memory.lifeOf(minedAt)) throw new Refusal(401, 'Payment too old');
      confirmed = await payments.confirm(payment, this.#liveUntil(minedAt));
      if (!confirmed) throw alreadyUsed();
      memory.redeemed(longestLife, minedAt);
    } finally {
      if (!confirmed) await payments.release(payment);
    }
  }

  /**
   * Gives a redeemed payment back.
   * @param counts whether something was done for it.
   * @returns whether it can be used again.
   */
  async refund(payment: string, counts: boolean, requestId: string): Promise<boolean> {
    const given = await this.#options.memory.payments.refund(payment, counts);
    if (!given) this.#options.log.warn('a payment was not given back once more', { requestId });
    return given;
  }

  async #reserve(payment: string): Promise<void> {
    const reservation = await this.#options.memory.payments.reserve(payment, this.#liveUntil(0));
    if (reservation === 'used') throw alreadyUsed();
    if (reservation === 'full') throw unavailable('no room for another payment among those that are still live');
  }

  /** Nothing is forgotten while any endpoint here could still accept it. */
  #liveUntil(minedAt: number): number {
    const { longestLife, now } = this.#options;
    return Math.max(minedAt, now()) + longestLife;
  }
}
