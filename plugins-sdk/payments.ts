import { randomId } from './random-id.ts';
import { type StateArea, StateUnavailable } from './state-area.ts';

/** One request's hold on a payment. Another request's on the same payment has another token. */
export interface Ticket {
  readonly payment: string;
  readonly token: string;
}

const MOST_REFUNDS = 3;

/** A hold on a payment, yet to be reserved. @param payment the transaction and its payer, in hex of either case. */
export function ticketFor(payment: string): Ticket {
  return { payment: payment.toLowerCase(), token: randomId() };
}

const reserved = ({ token }: Ticket) => `reserved ${token}`;
const redeemed = ({ token }: Ticket) => `redeemed ${token}`;

/**
 * The payments that have been redeemed, so that each is redeemed once, by whatever process shares the state.
 *
 * A request reserves the payment before it asks the chain. Then either the check failed (`release`), or the payment holds
 * (`confirm`) and the request goes on; a paid request that ends without a signed answer gives it back (`refund`). A
 * reservation whose owner died ends by itself; should the owner live on, its ticket confirms nothing any more.
 *
 * A payment is named by its transaction and its payer: nobody but the payer can redeem it, so that nobody else's reservation
 * may stand in the way. All times are milliseconds from now. Every call rejects with
 * StateUnavailable where the state cannot be reached, and then may or may not have been done.
 */
export class Payments {
  readonly #area: StateArea;

  constructor(area: StateArea) {
    this.#area = area;
  }

  /**
   * Claims a payment. Of racing requests one gets it.
   * @param lease after which others may claim it, unless it is confirmed.
   * @returns `false` when another request has or had it.
   */
  async reserve(ticket: Ticket, lease: number): Promise<boolean> {
    return (await this.#area.swap(ticket.payment, undefined, reserved(ticket), { ttl: lease })) === undefined;
  }

  /**
   * Turns a reservation into a redemption.
   * @param life for which the payment is remembered.
   * @returns `false`, and nothing has changed, when there is no such reservation any more. The request must then be refused.
   */
  async confirm(ticket: Ticket, life: number): Promise<boolean> {
    const options = { ttl: life, durable: true };
    const standing = await this.#area.swap(ticket.payment, reserved(ticket), redeemed(ticket), options);
    // An engine that asks twice after a lost answer finds its own work.
    return standing === undefined || standing.value === redeemed(ticket);
  }

  /** Gives up a hold whose request was refused before anything was done for it, whatever became of its confirmation. */
  async release(ticket: Ticket): Promise<void> {
    const standing = await this.#area.swap(ticket.payment, reserved(ticket), undefined);
    if (standing?.value === redeemed(ticket)) await this.#giveBack(ticket);
  }

  /**
   * Makes a redeemed payment usable again.
   * @param life for which it is remembered that it was given back.
   * @param counts whether this is one of the three times per payment; `false` where nothing was done for it.
   * @returns `false`, and nothing has changed, when all three are used up and it counts, or the payment is not this ticket's.
   */
  async refund(ticket: Ticket, life: number, counts: boolean): Promise<boolean> {
    if (counts && !(await this.#count(ticket, life))) return false;
    return this.#giveBack(ticket);
  }

  async #giveBack(ticket: Ticket): Promise<boolean> {
    const standing = await this.#area.swap(ticket.payment, redeemed(ticket), undefined, { durable: true });
    return standing === undefined;
  }

  /** Nobody but the holder counts: what stands there cannot change meanwhile. */
  async #count({ payment, token }: Ticket, life: number): Promise<boolean> {
    const key = `refunds ${payment}`;
    const seen = await this.#area.get(key);
    const [count = '0', by] = seen?.split(' ') ?? [];
    // Counted already, by a call whose answer was lost.
    if (by === token) return true;
    if (Number(count) >= MOST_REFUNDS) return false;
    const next = `${Number(count) + 1} ${token}`;
    const standing = await this.#area.swap(key, seen, next, { ttl: life, keepLonger: true, durable: true });
    if (standing !== undefined && standing.value !== next) throw new StateUnavailable('refunds are counted by others');
    return true;
  }
}
