import { addAnswerHeaders, type Exchange, type Log } from '../../plugins-sdk/index.ts';
import type { Measure } from '../../plugins-sdk/observe.ts';
import type { Debts } from '../../plugins-sdk/state.ts';
import { payment as paidBy } from '../shared/payment-facts.ts';
import type { Holds } from '../shared/payment-holds.ts';
import type { PaymentRecord, PaymentRecords } from '../shared/payment-records.ts';
import { refusalOf, unavailable } from '../shared/payments.ts';
import { type Facilitator, FacilitatorFailure, type Settlement } from './facilitator.ts';
import type { Facilitators } from './facilitators.ts';
import type { Entry } from './kept-answers.ts';
import { encodedHeader, type Offer } from './offer.ts';
import { idOf, type Payment } from './payload.ts';
import { askedOf, detailsOf, factsOf, type Purchase, recordOf, saidOf } from './purchase.ts';
import type { Sale } from './terms.ts';

export interface PurchasesOptions {
  readonly holds: Holds;
  readonly debts: Debts;
  /** Epoch milliseconds. */
  now(): number;
  readonly log: Log;
  readonly records: PaymentRecords;
  readonly counted: Measure<'outcome'>;
  /** Settlements that were tried, by what is sold and for what. */
  readonly settlements: Measure<keyof Sale | 'outcome'>;
}

/** Milliseconds that clocks of replicas, engines and chains may differ, with some more. */
export const CLOCK_MARGIN_MS = 900_000;
/** Milliseconds that a hold lasts from the beginning of a settlement, though its process may die. */
const SETTLEMENT_HOLD_MS = 60_000;

const USED = 'invalid_exact_evm_nonce_already_used';
const UNKNOWN = 'it is not known whether a payment was settled';

/**
 * Has each authorisation buy one answer. It is held until the facilitator has settled it, then marked as used, and given up where it was not
 * settled. A hold ends by itself when its process dies. The chain, too, takes it once: what is lost here costs nobody money.
 */
export class Purchases {
  readonly #options: PurchasesOptions;

  constructor(options: PurchasesOptions) {
    this.#options = options;
  }

  /**
   * Reserves a payment and has it verified.
   * @param isOver whether nobody hears any more what this comes to.
   * @param identified by which it is known from now on.
   * @throws Refusal 402, or 401 where nobody can tell; then the payment is as it was.
   */
  async hold(
    payment: Payment,
    facilitators: Facilitators,
    offer: Offer,
    isOver: () => boolean,
    identified: Entry | undefined,
  ): Promise<Purchase> {
    const { holds } = this.#options;
    const ticket = await holds.reserve(idOf(payment));
    if (typeof ticket === 'string') throw ticket === 'held' ? offer.busy() : offer.refusal(USED);
    try {
      const verifier = await this.verify(payment, facilitators, offer);
      if (isOver()) throw unavailable('the request ended before the payment was verified');
      // Only now: before, whoever names a payer could take his identifiers.
      if ((await identified?.claim()) === false) throw offer.busy();
      return { ticket, payment, facilitators, verifier, offer, identified };
    } catch (error) {
      await holds.release(ticket);
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
    await this.#begin(purchase, isTooLate);
    const fields = saidOf(purchase, exchange, 'the service has ended');
    const isKnown = this.#options.debts.owe({ message: UNKNOWN, fields });
    try {
      // Before the facilitator hears of it: a process that dies from here on leaves this for `payments --reconcile`.
      const record = recordOf(purchase, exchange, this.#options.now());
      await this.#options.records.open(record);
      await this.#settle(purchase, exchange, record, isTooLate);
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
    await this.#options.holds.release(purchase.ticket);
  }

  /** @throws Refusal where this request does not hold it any more, it is not known, or it is too late. */
  async #begin(purchase: Purchase, isTooLate: () => boolean): Promise<void> {
    const { ticket, payment, offer } = purchase;
    const { holds, counted, now } = this.#options;
    let isHeld = true;
    try {
      if (payment.endsAt <= now()) throw offer.refusal('invalid_exact_evm_payload_authorization_valid_before');
      isHeld = await holds.payments.renew(ticket, SETTLEMENT_HOLD_MS);
      if (!isHeld) throw offer.busy();
      // It may have waited for the state: from here on there is no way back.
      if (isTooLate()) throw unavailable('too late for a settlement');
    } catch (error) {
      counted({ outcome: 'released' }, 1);
      // The request that has the payment now may have the identifier as well.
      if (isHeld) await purchase.identified?.drop();
      await holds.release(ticket);
      throw toldOf(error);
    }
  }

  async #settle(
    purchase: Purchase,
    exchange: Exchange,
    record: PaymentRecord,
    isTooLate: () => boolean,
  ): Promise<void> {
    const { ticket, payment, facilitators, verifier, offer } = purchase;
    const { holds, log, records } = this.#options;
    let settlement: Settlement;
    try {
      // Not tied to the client: half a settlement is worse than one that nobody waits for.
      settlement = await facilitators.settle(verifier, () => !isTooLate(), ...askedOf(payment, offer));
    } catch (error) {
      if (!(error instanceof FacilitatorFailure)) throw error;
      if (error.isUnsent) {
        await this.#notSettled(purchase, exchange, record, error.message);
        throw unavailable(error.message);
      }
      this.#count(purchase, exchange, 'unknown');
      log.error(UNKNOWN, saidOf(purchase, exchange, error.message));
      await records.open({ ...record, fate: 'unknown' });
      // Its identifier stays: it may have been paid.
      await this.#giveBack(purchase);
      throw unavailable(error.message);
    }
    const { response } = settlement;
    const headers = { 'PAYMENT-RESPONSE': encodedHeader(response) };
    // A mode that tells failures in its own way has them, too.
    addAnswerHeaders(exchange, headers);
    const { transaction } = response;
    if (settlement.kind === 'settled') {
      this.#count(purchase, exchange, 'settled');
      paidBy.set(exchange, { ...factsOf(payment), transaction });
      log.info('payment settled', { ...detailsOf(purchase, exchange), transaction });
      const kept = holds.end(ticket, () => holds.payments.keep(ticket, this.#life(payment)));
      await Promise.all([kept, records.close({ ...record, fate: 'settled', transaction })]);
      if (exchange.abandoned)
        log.warn('a payment was settled whose client has left', saidOf(purchase, exchange, transaction));
      return;
    }
    const { reason } = settlement;
    await this.#notSettled(purchase, exchange, record, reason, transaction);
    throw offer.refusal(reason, { headers });
  }

  /** Ends a purchase of which it is certain that it was not paid. @param transaction that failed, if one was sent. */
  async #notSettled(
    purchase: Purchase,
    exchange: Exchange,
    record: PaymentRecord,
    reason: string,
    transaction = '',
  ): Promise<void> {
    const { log, records } = this.#options;
    this.#count(purchase, exchange, 'unsettled');
    const sent = transaction === '' ? {} : { transaction };
    log.warn('a payment was not settled', { ...detailsOf(purchase, exchange), detail: reason, ...sent });
    await records.close({ ...record, fate: 'not settled', ...sent });
    await purchase.identified?.drop();
    await this.#giveBack(purchase);
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
  async #giveBack({ ticket, payment }: Purchase): Promise<void> {
    const { holds } = this.#options;
    const life = this.#life(payment);
    await holds.end(ticket, async () => {
      if (!(await holds.payments.refund(ticket, life, true))) await holds.payments.keep(ticket, life);
    });
  }
}

/** What the state or the facilitator could not do, in a refusal. */
function toldOf(error: unknown): unknown {
  return error instanceof FacilitatorFailure ? unavailable(error.message) : refusalOf(error);
}
