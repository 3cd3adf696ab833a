/**
 * Has each authorisation buy one answer: it is held, verified, settled once the answer is signed, and given back where the request
 * comes to nothing. One mark for each payment says how it stands; the hold of a process that died ends with the authorisation.
 */
import { type AuthMethod, addAnswerHeaders, type Exchange, type Services } from '../../plugins-sdk/index.ts';
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

/** A request, and what it is to be bought with. */
interface Wanted {
  readonly payment: Payment;
  readonly exchange: Exchange;
  /** Where the client has given its payment an identifier, while that is this request's to give up. */
  identified: Entry | undefined;
}

/** One request's hold on a payment. */
export interface Purchase extends Wanted {
  readonly ticket: Ticket;
  /** Milliseconds for which it is remembered: until nobody can settle it any more. */
  readonly life: number;
  /** Whether an earlier request may have paid with it: its identifier stays, whatever becomes of this one. */
  readonly isInDoubt: boolean;
  /** The facilitator that has found the payment good. */
  verifier?: Facilitator;
  /** Begun once: what was paid for is the request, however many answers its mode gives, one after the other or at once. */
  settlement?: Promise<void>;
  /** Whether it was given back: a request that goes on asks for an answer that nobody pays. */
  isReleased?: true;
}

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
      outcomes: ['settled', 'unsettled', 'unknown'],
      others: ['refused', 'unavailable', 'limited', 'released', 'repeated'],
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
    const now = this.#services.now();
    const ticket = ticketFor(idOf(payment), aboutOf(payment, exchange, now));
    const life = lifeUntil(payment.endsAt, now);
    const mark = await this.#payments.hold(ticket, life);
    if (mark?.by !== ticket.token) throw mark && isHeld(mark) ? busy(payment.offer) : refusal(payment.offer, USED);
    const purchase: Purchase = { ...wanted, ticket, life, isInDoubt: mark.before?.state === 'unknown' };
    try {
      purchase.verifier = await this.verify(payment);
      // Only now: before, whoever names a payer could take his identifiers.
      if ((await identified?.claim()) === false) throw busy(payment.offer);
      if (isOver()) throw unavailable('the request ended before the payment was verified');
      const { from: payer, nonce } = payment.authorization;
      paidBy.set(exchange, { network: payment.requirements.network, payer, nonce });
      return purchase;
    } catch (error) {
      await this.#letGo(purchase);
      throw error;
    }
  }

  /** @returns who has found the payment good. @throws Refusal 402, or 401 where nobody can tell. */
  verify(payment: Payment): Promise<Facilitator> {
    return this.#facilitatorsOf(payment.method).verify(payment);
  }

  /** Gives a payment back whose request came to nothing before it was to be settled. */
  async release(purchase: Purchase): Promise<void> {
    if (purchase.settlement !== undefined) return;
    purchase.isReleased = true;
    this.counts.add('released');
    await this.#letGo(purchase);
  }

  /** The payment is as it was, and so is its identifier: no facilitator has heard that it is to be settled. */
  async #letGo({ ticket, identified, isInDoubt }: Purchase): Promise<void> {
    if (!isInDoubt) await identified?.drop();
    await this.#payments.release(ticket);
  }

  /** @throws Refusal where this request does not hold it any more, it is not known, or it is too late. */
  async #begin(purchase: Purchase, isTooLate: () => boolean): Promise<void> {
    const { ticket, payment, life } = purchase;
    try {
      if (payment.endsAt <= this.#services.now()) throw refusal(payment.offer, ENDED);
      if (!(await this.#payments.advance(ticket, 'settling', life))) {
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

  /**
   * Has a held payment settled, once, and tells so in the headers of the answer.
   * @param isTooLate whether nobody hears, or may hear in time, what this comes to.
   * @throws Refusal 402 where it was not settled, 401 where nobody can tell whether it was.
   */
  async settle(purchase: Purchase, isTooLate: () => boolean): Promise<void> {
    const { payment, exchange, verifier, ticket } = purchase;
    // Before the facilitator hears of it: a process that dies from here on leaves this for `payments --reconcile`.
    await this.#begin(purchase, isTooLate);
    const fields = { ...detailsOf(ticket.about), said: 'the service has ended' };
    const isKnown = this.#services.debts.owe({ message: UNKNOWN, fields });
    try {
      // Not tied to the client: half a settlement is worse than one that nobody waits for.
      const response = await this.#facilitatorsOf(payment.method).settle(payment, verifier, () => !isTooLate());
      const { transaction, errorReason } = response;
      const headers = { 'PAYMENT-RESPONSE': encodedHeader(response) };
      // A mode that tells failures in its own way has them, too.
      addAnswerHeaders(exchange, headers);
      if (errorReason === undefined) return await this.#settled(purchase, transaction);
      await this.#giveBack(purchase, 'unsettled', errorReason);
      throw refusal(payment.offer, errorReason, headers);
    } catch (error) {
      if (error instanceof FacilitatorFailure)
        await this.#giveBack(purchase, error.isUnsent ? 'unsettled' : 'unknown', error.reason ?? '');
      throw error;
    } finally {
      isKnown();
    }
  }

  async #settled(purchase: Purchase, transaction: string): Promise<void> {
    const { ticket, life, exchange } = purchase;
    const { log } = this.#services;
    const details = detailsOf(ticket.about);
    paidBy.set(exchange, { ...paidBy.require(exchange), transaction });
    log.info('payment settled', { ...details, transaction });
    const change = ({ before: _, ...mark }: Mark): Mark => ({ ...mark, state: 'settled', transaction });
    await this.#end(purchase, 'settled', life, change);
    if (exchange.abandoned) log.warn('a payment was settled whose client has left', { ...details, said: transaction });
  }

  /**
   * It can be used again: the chain takes it once. In doubt it stays what it is, whatever a later request is told.
   * @param said why.
   */
  async #giveBack(purchase: Purchase, outcome: 'unsettled' | 'unknown', said: string): Promise<void> {
    const { log } = this.#services;
    const details = detailsOf(purchase.ticket.about);
    if (outcome === 'unknown') log.error(UNKNOWN, { ...details, said });
    else log.warn('a payment was not settled', { ...details, detail: said });
    const isOpen = outcome === 'unknown' || purchase.isInDoubt;
    if (!isOpen) await purchase.identified?.drop();
    const state = isOpen ? 'unknown' : 'not settled';
    const life = isOpen ? OPEN_TTL_MS : 0;
    await this.#end(purchase, outcome, life, ({ by: _, before: __, ...mark }) => ({ ...mark, state }));
  }

  /** Counts and marks what became of a payment. */
  async #end(purchase: Purchase, outcome: string, life: number, change: End['change']): Promise<void> {
    const { payment, exchange, ticket } = purchase;
    this.counts.addSold(exchange.endpoint, payment.requirements, outcome);
    await this.#payments.end(ticket, { change, life, isCertain: true });
  }
}

/** With which an operator finds the payment on the chain, and its request in the log. @param now epoch milliseconds. */
function aboutOf({ requirements, authorization }: Payment, { requestId, endpoint }: Exchange, now: number): About {
  const { network, asset, amount } = requirements;
  const { from: payer, nonce, to: recipient, validBefore } = authorization;
  const what = { requestId, endpoint: `${endpoint.api}/${endpoint.name}`, network, asset, amount, payer, nonce };
  return { ...what, recipient, validBefore, since: now };
}

/** What the log says of a payment. */
export function detailsOf({ requestId, endpoint, network, asset, amount, payer, nonce }: About) {
  return { requestId, endpoint, network, asset, amount, payer, nonce };
}
