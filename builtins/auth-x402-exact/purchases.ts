import { addAnswerHeaders, type Exchange, type Log } from '../../plugins-sdk/index.ts';
import type { Measure } from '../../plugins-sdk/observe.ts';
import type { DebtLine, Debts } from '../../plugins-sdk/state.ts';
import { payment as paidBy } from '../shared/payment-facts.ts';
import { OPEN_TTL_MS } from '../shared/payment-index.ts';
import { givenBackMark, isHeld, type Mark } from '../shared/payment-mark.ts';
import { type Payments, refusalOf, ticketFor, unavailable } from '../shared/payments.ts';
import { type Facilitator, FacilitatorFailure, type Settlement } from './facilitator.ts';
import type { Facilitators } from './facilitators.ts';
import { encodedHeader, type Offer } from './offer.ts';
import { idOf, type Payment } from './payload.ts';
import { aboutOf, askedOf, detailsOf, factsOf, type Purchase } from './purchase.ts';
import type { Sale } from './terms.ts';

export interface PurchasesOptions {
  readonly payments: Payments;
  readonly debts: Debts;
  /** Epoch milliseconds. */
  now(): number;
  readonly log: Log;
  readonly counted: Measure<'outcome'>;
  /** Settlements that were tried, by what is sold and for what. */
  readonly settlements: Measure<keyof Sale | 'outcome'>;
}

/** Milliseconds that clocks of replicas, engines and chains may differ, with some more. */
export const CLOCK_MARGIN_MS = 900_000;

const USED = 'invalid_exact_evm_nonce_already_used';
const UNKNOWN = 'it is not known whether a payment was settled';

/**
 * Has each authorisation buy one answer. It is held until the facilitator has settled it, then marked as used, and given up where it
 * was not settled. The hold of a process that died ends with the authorisation. The chain, too, takes it once.
 */
export class Purchases {
  readonly #options: PurchasesOptions;

  constructor(options: PurchasesOptions) {
    this.#options = options;
  }

  /**
   * Holds a payment and has it verified.
   * @param isOver whether nobody hears any more what this comes to.
   * @throws Refusal 402, or 401 where nobody can tell; then the payment is as it was.
   */
  async hold(
    { payment, facilitators, offer, identified }: Pick<Purchase, 'payment' | 'facilitators' | 'offer' | 'identified'>,
    exchange: Exchange,
    isOver: () => boolean,
  ): Promise<Purchase> {
    const { payments, now } = this.#options;
    const ticket = ticketFor(idOf(payment), aboutOf(payment, exchange, now()));
    const other = await payments.hold(ticket, this.#life(payment));
    if (other !== undefined) throw isHeld(other) ? offer.busy() : offer.refusal(USED);
    try {
      const verifier = await this.verify(payment, facilitators, offer);
      if (isOver()) throw unavailable('the request ended before the payment was verified');
      // Only now: before, whoever names a payer could take his identifiers.
      if ((await identified?.claim()) === false) throw offer.busy();
      return { ticket, payment, facilitators, verifier, offer, identified };
    } catch (error) {
      await payments.release(ticket);
      throw toldOf(error);
    }
  }

  /** @returns who has found the payment good. @throws Refusal 402, or 401 where nobody can tell. */
  async verify(payment: Payment, facilitators: Facilitators, offer: Offer): Promise<Facilitator> {
    try {
      const { reason, by } = await facilitators.verify(...askedOf(payment, offer));
      if (reason !== undefined) throw offer.refusal(reason);
      return by;
    } catch (error) {
      throw toldOf(error);
    }
  }

  /**
   * Has a held payment settled, and tells so in the headers of the answer.
   * @param isTooLate whether nobody hears, or may hear in time, what this comes to.
   * @throws Refusal 402 where it was not settled, 401 where nobody can tell whether it was.
   */
  settle(purchase: Purchase, exchange: Exchange, isTooLate: () => boolean): Promise<void> {
    purchase.settlement ??= this.#settleOnce(purchase, exchange, isTooLate);
    return purchase.settlement;
  }

  async #settleOnce(purchase: Purchase, exchange: Exchange, isTooLate: () => boolean): Promise<void> {
    // Before the facilitator hears of it: a process that dies from here on leaves this for `payments --reconcile`.
    await this.#begin(purchase, isTooLate);
    const isKnown = this.#options.debts.owe(unknown(purchase, 'the service has ended'));
    try {
      await this.#settle(purchase, exchange, isTooLate);
    } finally {
      isKnown();
    }
  }

  /** Gives a payment back whose request came to nothing before it was to be settled. */
  async release(purchase: Purchase): Promise<void> {
    if (purchase.settlement !== undefined) return;
    purchase.isReleased = true;
    this.#options.counted({ outcome: 'released' }, 1);
    await purchase.identified?.drop();
    await this.#options.payments.release(purchase.ticket);
  }

  /** @throws Refusal where this request does not hold it any more, it is not known, or it is too late. */
  async #begin(purchase: Purchase, isTooLate: () => boolean): Promise<void> {
    const { ticket, payment, offer } = purchase;
    const { payments, counted, now } = this.#options;
    let isOurs = true;
    try {
      if (payment.endsAt <= now()) throw offer.refusal('invalid_exact_evm_payload_authorization_valid_before');
      isOurs = await payments.advance(ticket, 'settling', this.#life(payment));
      if (!isOurs) throw offer.busy();
      // It may have waited for the state: from here on there is no way back.
      if (isTooLate()) throw unavailable('too late for a settlement');
    } catch (error) {
      counted({ outcome: 'released' }, 1);
      // The request that has the payment now may have the identifier as well.
      if (isOurs) await purchase.identified?.drop();
      await payments.release(ticket);
      throw toldOf(error);
    }
  }

  async #settle(purchase: Purchase, exchange: Exchange, isTooLate: () => boolean): Promise<void> {
    const { payment, facilitators, verifier, offer } = purchase;
    const { log } = this.#options;
    let settlement: Settlement;
    try {
      // Not tied to the client: half a settlement is worse than one that nobody waits for.
      settlement = await facilitators.settle(verifier, () => !isTooLate(), ...askedOf(payment, offer));
    } catch (error) {
      if (!(error instanceof FacilitatorFailure)) throw error;
      if (error.isUnsent) {
        await this.#notSettled(purchase, exchange, error.message);
        throw unavailable(error.message);
      }
      this.#count(purchase, exchange, 'unknown');
      const { message, fields } = unknown(purchase, error.message);
      log.error(message, fields);
      // Its identifier stays: it may have been paid.
      await this.#giveBack(purchase, 'unknown', OPEN_TTL_MS);
      throw unavailable(error.message);
    }
    const { response } = settlement;
    const headers = { 'PAYMENT-RESPONSE': encodedHeader(response) };
    // A mode that tells failures in its own way has them, too.
    addAnswerHeaders(exchange, headers);
    const { transaction } = response;
    if (settlement.kind === 'settled') {
      await this.#settled(purchase, exchange, transaction);
      return;
    }
    const { reason } = settlement;
    await this.#notSettled(purchase, exchange, reason, transaction);
    throw offer.refusal(reason, { headers });
  }

  async #settled(purchase: Purchase, exchange: Exchange, transaction: string): Promise<void> {
    const { ticket, payment } = purchase;
    const { payments, log } = this.#options;
    this.#count(purchase, exchange, 'settled');
    paidBy.set(exchange, { ...factsOf(payment), transaction });
    const details = detailsOf(purchase);
    log.info('payment settled', { ...details, transaction });
    const change = ({ before: _, ...mark }: Mark): Mark => ({ ...mark, state: 'settled', transaction });
    const kept = payments.end(ticket, { change, life: this.#life(payment), isCertain: true });
    await Promise.all([kept, payments.ids.add(transaction, ticket.payment, exchange.requestId)]);
    if (exchange.abandoned) log.warn('a payment was settled whose client has left', { ...details, said: transaction });
  }

  /** Ends a purchase of which it is certain that it was not paid. @param transaction that failed, if one was sent. */
  async #notSettled(purchase: Purchase, exchange: Exchange, reason: string, transaction = ''): Promise<void> {
    this.#count(purchase, exchange, 'unsettled');
    const sent = transaction === '' ? {} : { transaction };
    this.#options.log.warn('a payment was not settled', { ...detailsOf(purchase), detail: reason, ...sent });
    await purchase.identified?.drop();
    await this.#giveBack(purchase, 'not settled', this.#life(purchase.payment));
  }

  #count({ payment }: Purchase, { endpoint }: Exchange, outcome: 'settled' | 'unsettled' | 'unknown'): void {
    const { network, asset } = payment.requirements;
    this.#options.counted({ outcome }, 1);
    this.#options.settlements({ api: endpoint.api, endpoint: endpoint.name, network, asset, outcome }, 1);
  }

  /** For which it is remembered: until nobody can settle it any more. */
  #life({ endsAt }: Payment): number {
    return Math.max(endsAt - this.#options.now(), 0) + CLOCK_MARGIN_MS;
  }

  /** Three times: each costs an upstream call and a settlement that may never come about. */
  async #giveBack({ ticket }: Purchase, state: 'unknown' | 'not settled', life: number): Promise<void> {
    const change = (mark: Mark) => givenBackMark(mark, true, { free: state, used: state });
    await this.#options.payments.end(ticket, { change, life, isCertain: true });
  }
}

/** What is told of a payment that may have been taken. @param said by the facilitator. */
function unknown(purchase: Purchase, said: string): DebtLine {
  return { message: UNKNOWN, fields: { ...detailsOf(purchase), said } };
}

/** What the state or the facilitator could not do, in a refusal. */
function toldOf(error: unknown): unknown {
  return error instanceof FacilitatorFailure ? unavailable(error.message) : refusalOf(error);
}
