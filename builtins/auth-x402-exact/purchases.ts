/**
 * Has each authorisation buy one answer: it is held, verified, settled once the answer is signed, and given back where the request
 * comes to nothing. One mark for each payment says how it stands; the hold of a process that died ends with the authorisation.
 */
import { type AuthMethod, addAnswerHeaders, type Exchange, type Services } from '../../plugins-sdk/index.ts';
import type { DebtLine } from '../../plugins-sdk/state.ts';
import { type PaymentCounts, paymentCounts } from '../shared/payment-counts.ts';
import { payment as paidBy } from '../shared/payment-facts.ts';
import { OPEN_TTL_MS } from '../shared/payment-index.ts';
import { type About, isHeld, lifeUntil, type Mark, type Ticket } from '../shared/payment-mark.ts';
import { type End, type Payments, refusalOf, ticketFor, unavailable } from '../shared/payments.ts';
import { type Facilitator, FacilitatorFailure, type Facilitators, USED } from './facilitators.ts';
import type { Entry } from './kept-answers.ts';
import { busy, encodedHeader, refusal } from './offer.ts';
import { idOf, type Payment } from './payload.ts';
import { acceptsOf } from './terms.ts';

/** A request's hold on a payment, which may not be verified yet. */
interface Held {
  readonly payment: Payment;
  readonly exchange: Exchange;
  readonly ticket: Ticket;
  /** Where the client has given its payment an identifier, while that is this request's to give up. */
  identified: Entry | undefined;
  /** Whether an earlier request may have paid with it: its identifier stays, whatever becomes of this one. */
  readonly isInDoubt: boolean;
}

/** What one request is to be bought with. */
type Wanted = Pick<Held, 'payment' | 'exchange' | 'identified'>;

/** One request's hold on a payment that was verified. */
export interface Purchase extends Held {
  /** The facilitator that has found the payment good. */
  readonly verifier: Facilitator;
  /** Begun once: what was paid for is the request, however many answers its mode gives, one after the other or at once. */
  settlement?: Promise<void>;
  /** Whether it was given back: a request that goes on asks for an answer that nobody pays. */
  isReleased?: true;
}

const OUTCOMES = ['settled', 'unsettled', 'unknown'] as const;
type Outcome = (typeof OUTCOMES)[number];
const ENDED = 'invalid_exact_evm_payload_authorization_valid_before';
const UNKNOWN = 'it is not known whether a payment was settled';

export class Purchases {
  readonly counts: PaymentCounts;
  readonly #services: Services;
  readonly #payments: Payments;
  readonly #facilitatorsOf: (method: AuthMethod) => Facilitators;

  constructor(services: Services, payments: Payments, facilitatorsOf: (method: AuthMethod) => Facilitators) {
    this.#services = services;
    this.#payments = payments;
    this.#facilitatorsOf = facilitatorsOf;
    this.counts = paymentCounts(services, {
      all: ['x402_exact_payments_total', 'Standard x402 payments, by what became of them'],
      sold: [
        'x402_exact_settlements_total',
        'Settlements of standard payments, by what was sold, what it was paid with, and how they ended',
      ],
      outcomes: OUTCOMES,
      others: ['refused', 'unavailable', 'limited', 'released'],
      tokensOf: (endpoint) => acceptsOf(endpoint).map(({ accept }) => accept),
    });
  }

  /**
   * Holds a payment and has it verified.
   * @param isOver whether nobody hears any more what this comes to.
   * @throws Refusal 402, 401 or StateUnavailable where nobody can tell; then the payment is as it was.
   */
  async hold(wanted: Wanted, isOver: () => boolean): Promise<Purchase> {
    const { payment, exchange, identified } = wanted;
    const { offer } = payment;
    const ticket = ticketFor(idOf(payment), aboutOf(wanted, this.#services.now()));
    const mark = await this.#payments.hold(ticket, this.#life(payment));
    if (mark?.by !== ticket.token) throw mark && isHeld(mark) ? busy(offer) : refusal(offer, USED);
    const held: Held = { ...wanted, ticket, isInDoubt: mark.before?.state === 'unknown' };
    try {
      const verifier = await this.verify(payment);
      // Only now: before, whoever names a payer could take his identifiers.
      if ((await identified?.claim()) === false) throw busy(offer);
      if (isOver()) throw unavailable('the request ended before the payment was verified');
      paidBy.set(exchange, factsOf(payment));
      return { ...held, verifier };
    } catch (error) {
      await this.#letGo(held);
      throw error;
    }
  }

  /** @returns who has found the payment good. @throws Refusal 402, or 401 where nobody can tell. */
  async verify(payment: Payment): Promise<Facilitator> {
    const { said, by } = await this.#facilitatorsOf(payment.method)
      .verify(payment)
      .catch((error: unknown) => {
        throw error instanceof FacilitatorFailure ? unavailable(error.message) : error;
      });
    if (said !== undefined) throw refusal(payment.offer, said);
    return by;
  }

  /**
   * Has a held payment settled, and tells so in the headers of the answer.
   * @param isTooLate whether nobody hears, or may hear in time, what this comes to.
   * @throws Refusal 402 where it was not settled, 401 where nobody can tell whether it was.
   */
  settle(purchase: Purchase, isTooLate: () => boolean): Promise<void> {
    purchase.settlement ??= this.#settle(purchase, isTooLate);
    return purchase.settlement;
  }

  /** Gives a payment back whose request came to nothing before it was to be settled. */
  async release(purchase: Purchase): Promise<void> {
    if (purchase.settlement !== undefined) return;
    purchase.isReleased = true;
    this.counts.add('released');
    await this.#letGo(purchase);
  }

  /** The payment is as it was, and so is its identifier: no facilitator has heard that it is to be settled. */
  async #letGo({ ticket, identified, isInDoubt }: Held): Promise<void> {
    if (!isInDoubt) await identified?.drop();
    await this.#payments.release(ticket);
  }

  /** @throws Refusal where this request does not hold it any more, it is not known, or it is too late. */
  async #begin(purchase: Purchase, isTooLate: () => boolean): Promise<void> {
    const { ticket, payment } = purchase;
    try {
      if (payment.endsAt <= this.#services.now()) throw refusal(payment.offer, ENDED);
      if (!(await this.#payments.advance(ticket, 'settling', this.#life(payment)))) {
        // The request that has the payment now may have the identifier as well.
        purchase.identified = undefined;
        throw busy(payment.offer);
      }
      // It may have waited for the state: from here on there is no way back.
      if (isTooLate()) throw unavailable('too late for a settlement');
    } catch (error) {
      this.counts.add('released');
      await this.#letGo(purchase);
      throw refusalOf(error);
    }
  }

  async #settle(purchase: Purchase, isTooLate: () => boolean): Promise<void> {
    const { payment, exchange, verifier } = purchase;
    // Before the facilitator hears of it: a process that dies from here on leaves this for `payments --reconcile`.
    await this.#begin(purchase, isTooLate);
    const isKnown = this.#services.debts.owe(unknown(purchase, 'the service has ended'));
    try {
      // Not tied to the client: half a settlement is worse than one that nobody waits for.
      const response = await this.#facilitatorsOf(payment.method).settle(verifier, () => !isTooLate(), payment);
      const { transaction, errorReason } = response;
      const headers = { 'PAYMENT-RESPONSE': encodedHeader(response) };
      // A mode that tells failures in its own way has them, too.
      addAnswerHeaders(exchange, headers);
      if (errorReason === undefined) return await this.#settled(purchase, transaction);
      await this.#giveBack(purchase, 'unsettled', errorReason, transaction);
      throw refusal(payment.offer, errorReason, headers);
    } catch (error) {
      if (!(error instanceof FacilitatorFailure)) throw error;
      await this.#giveBack(purchase, error.isUnsent ? 'unsettled' : 'unknown', error.message);
      throw unavailable(error.message);
    } finally {
      isKnown();
    }
  }

  async #settled(purchase: Purchase, transaction: string): Promise<void> {
    const { ticket, payment, exchange } = purchase;
    const { log } = this.#services;
    const details = detailsOf(purchase);
    paidBy.set(exchange, { ...factsOf(payment), transaction });
    log.info('payment settled', { ...details, transaction });
    const change = ({ before: _, ...mark }: Mark): Mark => ({ ...mark, state: 'settled', transaction });
    await Promise.all([
      this.#end(purchase, 'settled', change, this.#life(payment)),
      this.#payments.index.add(transaction, ticket.payment, exchange.requestId),
    ]);
    if (exchange.abandoned) log.warn('a payment was settled whose client has left', { ...details, said: transaction });
  }

  /**
   * It can be used again: the chain takes it once. In doubt it stays what it is, whatever a later request is told.
   * @param said why. @param sent a transaction that failed, if there is one.
   */
  async #giveBack(purchase: Purchase, outcome: 'unsettled' | 'unknown', said: string, sent = ''): Promise<void> {
    const { log } = this.#services;
    const transaction = sent && { transaction: sent };
    if (outcome === 'unknown') log.error(UNKNOWN, unknown(purchase, said).fields);
    else log.warn('a payment was not settled', { ...detailsOf(purchase), detail: said, ...transaction });
    const isOpen = outcome === 'unknown' || purchase.isInDoubt;
    if (!isOpen) await purchase.identified?.drop();
    const state = isOpen ? 'unknown' : 'not settled';
    const change = ({ by: _, before: __, ...mark }: Mark): Mark => ({ ...mark, state });
    await this.#end(purchase, outcome, change, isOpen ? OPEN_TTL_MS : this.#life(purchase.payment));
  }

  /** Counts and marks what became of a payment. */
  async #end(purchase: Purchase, outcome: Outcome, change: End['change'], life: number): Promise<void> {
    const { payment, exchange, ticket } = purchase;
    this.counts.addSold(exchange.endpoint, payment.requirements, outcome);
    await this.#payments.end(ticket, { change, life, isCertain: true });
  }

  /** For which it is remembered: until nobody can settle it any more. */
  #life({ endsAt }: Payment): number {
    return lifeUntil(endsAt, this.#services.now());
  }
}

/** What is known of a payment before it is settled. */
function factsOf({ requirements: { network }, authorization: { from: payer, nonce } }: Payment) {
  return { network, payer, nonce };
}

/** With which an operator finds the payment on the chain, and its request in the log. @param now epoch milliseconds. */
function aboutOf({ payment, exchange: { requestId, endpoint } }: Wanted, now: number): About {
  const { network, asset, amount } = payment.requirements;
  const { from: payer, nonce, to: recipient, validBefore } = payment.authorization;
  const what = { requestId, endpoint: `${endpoint.api}/${endpoint.name}`, network, asset, amount, payer, nonce };
  return { ...what, recipient, validBefore, since: now };
}

/** What the log says of a payment. */
function detailsOf({ ticket }: Purchase) {
  const { recipient, validBefore, since, ...details } = ticket.about;
  return details;
}

/** What is told of a payment that may have been taken. @param said by the facilitator. */
function unknown(purchase: Purchase, said: string): DebtLine {
  return { message: UNKNOWN, fields: { ...detailsOf(purchase), said } };
}
