import { randomId } from '../../lib/eth/random-id.ts';
import { Refusal } from '../../plugins-sdk/index.ts';
import type { FailureClass } from '../../plugins-sdk/observe.ts';
import { type StateArea, StateUnavailable, StateUnreadable } from '../../plugins-sdk/state.ts';

/** One request's hold on a payment. Another request's on the same payment has another token. */
export interface Ticket {
  readonly payment: string;
  readonly token: string;
}

/** The refusal of whoever goes on after his payment was given back, as a mode that makes several answers may. */
export function givenBack(): Refusal {
  return new Refusal(402, 'Payment required', { reason: 'the payment was given back' });
}

const MOST_REFUNDS = 3;

/** A hold on a payment, yet to be reserved. @param payment the transaction and its payer, in hex of either case. */
export function ticketFor(payment: string): Ticket {
  return { payment: payment.toLowerCase(), token: randomId() };
}

/** How a payment stands that another request has, or had: it may be given up yet, or has bought something. */
export type Taken = 'held' | 'redeemed';

/** What stands under the keys of a payment. */
export interface Standing {
  readonly mark: string | undefined;
  /** How often it was given back, and by whom last. */
  readonly refunds: string | undefined;
  readonly taken: Taken | undefined;
  /** Of the request that has or had it. */
  readonly token: string | undefined;
}

const refundsKey = (payment: string) => `refunds ${payment}`;

const RESERVED = 'reserved ';
const REDEEMED = 'redeemed ';
const reserved = ({ token }: Ticket) => RESERVED + token;
const redeemed = ({ token }: Ticket) => REDEEMED + token;

/** Nobody could tell whether the payment is good; the client may retry. @param fault `false` where the client may be to blame. */
export function unavailable(reason: string, failureClass?: FailureClass, fault = true): Refusal {
  return new Refusal(401, 'Payment verification unavailable', { reason, failureClass, fault });
}

/** A refusal in the place of a failure of the state; anything else as it is. */
export function refusalOf(error: unknown): unknown {
  return error instanceof StateUnavailable ? unavailable(error.message, 'engine') : error;
}

/**
 * The payments that have been redeemed, so that each is redeemed once, by whatever process shares the state.
 *
 * A request reserves the payment before it asks anybody about it. Then either it comes to nothing (`release`), or the payment is
 * taken (`confirm`). A taken payment whose request ends without a signed answer is given back (`refund`). A
 * reservation whose owner died ends by itself; should the owner live on, its ticket confirms nothing any more.
 *
 * A payment is named by its transaction and its payer. Nobody but the payer can redeem it, so that nobody else's reservation
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
   * @param lease after which others may claim it, unless it is renewed or confirmed.
   * @returns how it stands when another request has or had it; else nothing.
   */
  async reserve(ticket: Ticket, lease: number): Promise<Taken | undefined> {
    const standing = await this.#area.compareAndSet(ticket.payment, undefined, reserved(ticket), { ttl: lease });
    if (standing === undefined) return undefined;
    const { value = RESERVED } = standing;
    if (value.startsWith(REDEEMED)) return 'redeemed';
    if (value.startsWith(RESERVED)) return 'held';
    throw new StateUnreadable(`payment ${ticket.payment}`);
  }

  /**
   * Lengthens a reservation, never shortens it.
   * @returns `false` when there is no such reservation any more.
   */
  async renew(ticket: Ticket, lease: number): Promise<boolean> {
    const options = { ttl: lease, keepLonger: true };
    return (await this.#area.compareAndSet(ticket.payment, reserved(ticket), reserved(ticket), options)) === undefined;
  }

  /**
   * Turns a reservation into a redemption.
   * @param life for which the payment is remembered.
   * @returns `false`, and nothing has changed, when there is no such reservation any more. The request must then be refused.
   */
  async confirm(ticket: Ticket, life: number): Promise<boolean> {
    return this.#redeem(ticket, reserved(ticket), life);
  }

  /** Remembers a payment that somebody else has taken already, though its reservation may have ended meanwhile. */
  async keep(ticket: Ticket, life: number): Promise<void> {
    if (!(await this.confirm(ticket, life))) await this.#redeem(ticket, undefined, life);
  }

  /**
   * Gives up a hold, whatever became of its confirmation.
   * @returns `false`, and nothing has changed, when another request has the payment.
   */
  async release(ticket: Ticket): Promise<boolean> {
    const standing = await this.#area.compareAndSet(ticket.payment, reserved(ticket), undefined);
    if (standing?.value === undefined) return true;
    if (standing.value !== redeemed(ticket)) return false;
    await this.#area.compareAndSet(ticket.payment, redeemed(ticket), undefined, { durable: true });
    return true;
  }

  /**
   * Gives up a hold for which something was done.
   * @param life for which it is remembered that it was given back.
   * @param counts whether this is one of the three times per payment; `false` where nothing was done for it.
   * @returns `false`, and nothing has changed, when all three are used up and it counts, or another request has the payment.
   */
  async refund(ticket: Ticket, life: number, counts: boolean): Promise<boolean> {
    return (!counts || (await this.#count(ticket, life))) && this.release(ticket);
  }

  /** How a payment stands, and how often it was given back. */
  async standing(payment: string): Promise<Standing> {
    const [mark, refunds] = await Promise.all([this.#area.get(payment), this.#area.get(refundsKey(payment))]);
    const taken = mark?.startsWith(REDEEMED) ? 'redeemed' : 'held';
    const [, token] = mark?.split(' ') ?? [];
    return { mark, refunds, taken: mark === undefined ? undefined : taken, token };
  }

  /**
   * Lets a redeemed payment be used again, and given back as often as a new one.
   * @param seen how it stood. @returns `false`, and nothing has changed, when it stands otherwise by now.
   */
  async forget(payment: string, { mark, refunds }: Standing): Promise<boolean> {
    if ((await this.#area.compareAndSet(payment, mark, undefined, { durable: true })) !== undefined) return false;
    if (refunds !== undefined)
      await this.#area.compareAndSet(refundsKey(payment), refunds, undefined, { durable: true });
    return true;
  }

  async #redeem(ticket: Ticket, expected: string | undefined, life: number): Promise<boolean> {
    const options = { ttl: life, durable: true };
    const standing = await this.#area.compareAndSet(ticket.payment, expected, redeemed(ticket), options);
    // An engine that asks twice after a lost answer finds its own work.
    return standing === undefined || standing.value === redeemed(ticket);
  }

  /** Nobody but the holder counts: what stands there cannot change meanwhile. */
  async #count({ payment, token }: Ticket, life: number): Promise<boolean> {
    const key = refundsKey(payment);
    const seen = await this.#area.get(key);
    const [, digits, by] = /^([1-9]) (\S+)$/.exec(seen ?? '') ?? [];
    // Whatever it means, it must not begin the count anew.
    if (seen !== undefined && digits === undefined) throw new StateUnreadable(key);
    // Counted already, by a call whose answer was lost.
    if (by === token) return true;
    const count = Number(digits ?? 0);
    if (count >= MOST_REFUNDS) return false;
    const next = `${count + 1} ${token}`;
    const standing = await this.#area.compareAndSet(key, seen, next, { ttl: life, keepLonger: true, durable: true });
    if (standing !== undefined && standing.value !== next) throw new StateUnavailable('refunds are counted by others');
    return true;
  }
}
