import { BoundedTtlMap } from '../../plugins-sdk/bounded-ttl-map.ts';

/** What became of a reservation: it is yours, another request has or had the payment, or there is no room for it. */
export type Reservation = 'reserved' | 'used' | 'full';

/**
 * The payments that have been redeemed, so that each is redeemed once. Answers may be promises (a shared engine) or not
 * (in memory): await them.
 *
 * A request reserves the payment before it asks the chain. Then either the check failed (`release`), or the payment
 * holds (`confirm`) and the request goes on; a paid request that ends without a signed answer gives it back (`refund`).
 * Every reservation ends in one of the first two, whether or not the client is still there. However it is given back, one
 * request at a time has it.
 *
 * A payment is named by its transaction and its payer (hex, in either case): nobody but the payer can redeem it, so that
 * nobody else's reservation may stand in the way. `liveUntil` is in milliseconds of the Unix epoch: the last moment at
 * which the payment could still be accepted anywhere in this service. It never moves back.
 */
export interface PaymentStore {
  /** Claims a payment. Of racing requests one gets `reserved`, the others `used`. */
  reserve(name: string, liveUntil: number): Reservation | Promise<Reservation>;
  /**
   * Turns a reservation into a redemption.
   *
   * @returns `false`, and nothing has changed, when there is no such reservation: it has ended, or the payment is
   *   redeemed already. The request must then be refused.
   */
  confirm(name: string, liveUntil: number): boolean | Promise<boolean>;
  /** Gives up a reservation whose check failed; it does not count. @returns `false` when there is no such reservation. */
  release(name: string): boolean | Promise<boolean>;
  /**
   * Makes a redeemed payment usable again.
   *
   * @param counts whether this is one of the three times per transaction; `false` where nothing was done for the payment.
   * @returns `false`, and nothing has changed, when all three are used up and it counts, or the payment is not redeemed.
   */
  refund(name: string, counts: boolean): boolean | Promise<boolean>;
}

export interface RedeemedPaymentsOptions {
  /** Most transactions held at once; 100,000 by default. */
  readonly capacity?: number;
  /** Milliseconds of the Unix epoch; `Date.now` by default. */
  readonly now?: () => number;
}

interface Payment {
  readonly state: 'reserved' | 'redeemed' | 'refunded';
  readonly refunds: number;
}

const MOST_REFUNDS = 3;

/**
 * The redeemed payments in memory. No live entry is ever dropped to make room. A payment that is given back is deleted, unless
 * it has refunds to be counted: so every entry that lasts was paid for.
 */
export class RedeemedPayments implements PaymentStore {
  readonly #now: () => number;
  readonly #payments: BoundedTtlMap<Payment>;

  /** @throws RangeError when `capacity` is no positive integer. */
  constructor({ capacity = 100_000, now = Date.now }: RedeemedPaymentsOptions = {}) {
    this.#payments = new BoundedTtlMap(capacity);
    this.#now = now;
  }

  /** Transactions held, expired ones that nobody has dropped yet included; never more than the capacity. */
  get size(): number {
    return this.#payments.size;
  }

  /** @throws RangeError when `liveUntil` is NaN. */
  reserve(name: string, liveUntil: number): Reservation {
    const payment = this.#find(name);
    if (payment !== undefined && payment.state !== 'refunded') {
      return 'used';
    }
    return this.#write(name, { state: 'reserved', refunds: payment?.refunds ?? 0 }, liveUntil) ? 'reserved' : 'full';
  }

  /** @throws RangeError when `liveUntil` is NaN. */
  confirm(name: string, liveUntil: number): boolean {
    const payment = this.#find(name);
    return payment?.state === 'reserved' && this.#write(name, { ...payment, state: 'redeemed' }, liveUntil);
  }

  release(name: string): boolean {
    return this.#giveBack(name, 'reserved', 0);
  }

  refund(name: string, counts: boolean): boolean {
    return this.#giveBack(name, 'redeemed', counts ? 1 : 0);
  }

  #giveBack(name: string, from: Payment['state'], cost: number): boolean {
    const payment = this.#find(name);
    if (payment?.state !== from) return false;
    const refunds = payment.refunds + cost;
    if (refunds > MOST_REFUNDS) return false;
    return refunds === 0 ? this.#payments.delete(keyOf(name)) : this.#write(name, { state: 'refunded', refunds });
  }

  #find(name: string): Payment | undefined {
    return this.#payments.get(keyOf(name), this.#now());
  }

  #write(name: string, payment: Payment, liveUntil = Number.NEGATIVE_INFINITY): boolean {
    const key = keyOf(name);
    const now = this.#now();
    const current = this.#payments.expiry(key, now) ?? Number.NEGATIVE_INFINITY;
    // A payment still counts at `liveUntil`, and an entry of the map is gone at its end: hence one millisecond more.
    return this.#payments.set(key, payment, Math.max(current, liveUntil + 1), now);
  }
}

function keyOf(name: string): string {
  return name.toLowerCase();
}
