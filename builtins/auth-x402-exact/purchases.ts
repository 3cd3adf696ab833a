/**
 * Sells one answer for each authorisation: holds it, has it verified, has it settled once the answer is signed, and gives it
 * back if the request fails. One mark for each payment records its state. The hold of a process that died ends with the
 * authorisation.
 */
import { addAnswerHeaders, type Exchange, type Services } from '../../plugins-sdk/index.ts';
import { OPEN_TTL_MS } from '../shared/payment-index.ts';
import {
  factsOf,
  isHeld,
  lifeUntil,
  type Outcome,
  payment as paidBy,
  type Ticket,
  ticketFor,
} from '../shared/payment-mark.ts';
import { type PaymentReports, paymentReports } from '../shared/payment-reports.ts';
import { type Payments, refusalOf, unavailable } from '../shared/payments.ts';
import { type Facilitator, FacilitatorFailure, type FacilitatorsOf, USED } from './facilitators.ts';
import type { Entry } from './kept-answers.ts';
import { busy, encodedHeader, refusal } from './offer.ts';
import { idOf, type Payment } from './payload.ts';
import { acceptsOf } from './terms.ts';

/** One request's hold on a payment. */
export interface Purchase {
  readonly payment: Payment;
  readonly exchange: Exchange;
  /** The identifier that the client has given its payment, as long as this request may free it. */
  identified: Entry | undefined;
  readonly ticket: Ticket;
  /** Milliseconds for which the payment is remembered: until it can certainly not be settled any more. */
  readonly life: number;
  /** Whether an earlier request may have paid with it. Its identifier then stays claimed, however this request ends. */
  readonly isInDoubt: boolean;
  /** The facilitator that found the payment valid. */
  verifier?: Facilitator;
  /** Whether a facilitator may have been asked to settle the payment. */
  isSettling?: true;
}

const ENDED = 'invalid_exact_evm_payload_authorization_valid_before';
const UNKNOWN = 'it is not known whether a payment was settled';

export class Purchases {
  readonly reports: PaymentReports<'settled' | 'unsettled' | 'unknown'>;
  readonly #services: Services;
  readonly #payments: Payments;
  readonly #facilitatorsOf: FacilitatorsOf;

  constructor(services: Services, payments: Payments, facilitatorsOf: FacilitatorsOf) {
    this.#services = services;
    this.#payments = payments;
    this.#facilitatorsOf = facilitatorsOf;
    this.reports = paymentReports(services, {
      all: ['x402_exact_payments_total', 'Standard x402 payments, by what became of them'],
      sold: [
        'x402_exact_settlements_total',
        'Settlements of standard payments, by what was sold, what it was paid with, and how they ended',
      ],
      lines: {
        settled: ['info', 'payment settled'],
        unsettled: ['warn', 'a payment was not settled'],
        unknown: ['error', UNKNOWN],
      },
      others: ['refused', 'unavailable', 'limited', 'released', 'repeated'],
      tokensOf: (endpoint) => acceptsOf(endpoint).map(({ accept }) => accept),
    });
  }

  /**
   * Holds a payment and has it verified.
   * @param identified the identifier that its client has given it.
   * @param isOver whether the request is over: its budget has ended, or its client has left.
   * @throws Refusal 402; Refusal 401 or StateUnavailable without a verdict. The payment is then as it was.
   */
  async hold(payment: Payment, exchange: Exchange, identified: Entry | undefined, isOver: () => boolean) {
    const now = this.#services.now();
    const { from: payer, nonce, to: recipient, validBefore } = payment.authorization;
    const { network, asset, amount } = payment.requirements;
    const facts = { network, asset, amount, payer, nonce, recipient, validBefore, since: now };
    const ticket = ticketFor(idOf(payment), exchange, facts);
    const life = lifeUntil(payment.endsAt, now);
    const mark = await this.#payments.hold(ticket, life);
    if (mark?.by !== ticket.token) {
      // Its answer may have been sold since this request looked for one: the next try then finds it.
      const isBusy = (mark && isHeld(mark)) || (await identified?.find()) !== undefined;
      throw isBusy ? busy(payment.offer) : refusal(payment.offer, USED);
    }
    const isInDoubt = mark.before?.state === 'unknown';
    const purchase: Purchase = { payment, exchange, identified, ticket, life, isInDoubt };
    try {
      purchase.verifier = await this.#facilitatorsOf(payment.method).verify(payment);
      // Only once it is verified: else anybody could claim identifiers in a payer's name.
      if ((await identified?.claim()) === false) throw busy(payment.offer);
      if (isOver()) throw unavailable('the request ended before the payment was verified');
      paidBy.set(exchange, { network, payer, nonce });
      return purchase;
    } catch (error) {
      await this.#letGo(purchase);
      throw error;
    }
  }

  /** Gives the payment of a failed request back, unless its settlement has begun. */
  async release(purchase: Purchase): Promise<void> {
    if (purchase.isSettling) return;
    this.reports.count('released');
    await this.#letGo(purchase);
  }

  /** Restores the payment and its identifier to what they were: no facilitator was asked to settle it. */
  async #letGo({ ticket, identified, isInDoubt }: Purchase): Promise<void> {
    if (!isInDoubt) await identified?.drop();
    await this.#payments.end(ticket);
  }

  /** Marks a payment as being settled. @throws Refusal if this request has lost its hold, that is unknown, or it is too late. */
  async #begin(purchase: Purchase, isTooLate: () => boolean): Promise<void> {
    const { ticket, payment, life } = purchase;
    if (payment.endsAt <= this.#services.now()) throw refusal(payment.offer, ENDED);
    const isHolder = await this.#payments.advance(ticket, 'settling', life).catch((error: unknown) => {
      throw refusalOf(error);
    });
    if (!isHolder) {
      // The request that has the payment now may have the identifier as well.
      purchase.identified = undefined;
      throw busy(payment.offer);
    }
    // Checked last, since the state may have taken long: from here on there is no way back.
    if (isTooLate()) throw unavailable('too late for a settlement');
    purchase.isSettling = true;
  }

  /**
   * Has a held payment settled, once, and adds the outcome to the answer's headers.
   * @param isTooLate whether the request is over, or too little of its budget is left.
   * @param keep keeps the answer for requests that repeat this one; never rejects.
   * @throws Refusal 402 if it was not settled, 401 if that is unknown.
   */
  async settle(purchase: Purchase, isTooLate: () => boolean, keep: () => Promise<void> | undefined): Promise<void> {
    const { payment, exchange, verifier, ticket } = purchase;
    // Marked before the facilitator is asked: if the process dies from here on, `payments --reconcile` finds the mark.
    await this.#begin(purchase, isTooLate);
    const fields = { ...factsOf(ticket.about), said: 'the service has ended' };
    const endDebt = this.#services.debts.owe({ message: UNKNOWN, fields });
    try {
      // Not aborted when the client leaves: half a settlement is worse than one that nobody waits for.
      const response = await this.#facilitatorsOf(payment.method).settle(payment, verifier, () => !isTooLate());
      const { transaction, errorReason } = response;
      const headers = { 'PAYMENT-RESPONSE': encodedHeader(response) };
      // Added before the refusal is thrown, for modes that send failures in their own form.
      addAnswerHeaders(exchange, headers);
      if (errorReason === undefined) return await this.#settled(purchase, transaction, keep);
      await this.#giveBack(purchase, 'unsettled', errorReason);
      throw refusal(payment.offer, errorReason, headers);
    } catch (error) {
      if (error instanceof FacilitatorFailure)
        await this.#giveBack(purchase, error.isUnsent ? 'unsettled' : 'unknown', error.reason ?? '');
      throw error;
    } finally {
      endDebt();
    }
  }

  async #settled(purchase: Purchase, transaction: string, keep: () => Promise<void> | undefined): Promise<void> {
    const { ticket, life, exchange } = purchase;
    paidBy.set(exchange, { ...paidBy.require(exchange), transaction });
    this.reports.tell(ticket.about, exchange.endpoint, 'settled', { transaction });
    // While the payment is held, a repeat is told to try again. Afterwards it has to find the answer, or it would count as used.
    await keep();
    await this.#payments.end(ticket, { outcome: { state: 'settled', transaction }, life });
    if (!exchange.abandoned) return;
    const fields = { ...factsOf(ticket.about), said: transaction };
    this.#services.log.warn('a payment was settled whose client has left', fields);
  }

  /**
   * Frees a payment for another request, which is safe since the chain takes it once. A payment in doubt stays in doubt,
   * however a later request ends.
   * @param said the reason, for the log.
   */
  async #giveBack(purchase: Purchase, how: 'unsettled' | 'unknown', said: string): Promise<void> {
    const { ticket, exchange, identified, isInDoubt } = purchase;
    const why = how === 'unknown' ? { said } : { detail: said };
    this.reports.tell(ticket.about, exchange.endpoint, how, why);
    const isOpen = how === 'unknown' || isInDoubt;
    if (!isOpen) await identified?.drop();
    const outcome: Outcome = { state: isOpen ? 'unknown' : 'not settled', by: undefined };
    await this.#payments.end(ticket, { outcome, life: isOpen ? OPEN_TTL_MS : 0 });
  }
}
