import { atMostEvery } from '../../lib/time.ts';
import { Refusal, type Services } from '../../plugins-sdk/index.ts';
import type { DebtLine } from '../../plugins-sdk/state.ts';
import type { Mined } from '../shared/chain.ts';
import { OPEN_TTL_MS } from '../shared/payment-index.ts';
import { lifeUntil, MOST_REFUNDS, type Outcome, type Ticket } from '../shared/payment-mark.ts';
import { type Payments, unavailable } from '../shared/payments.ts';
import type { Ledger } from './ledger.ts';

export interface RedemptionsOptions extends Pick<Services, 'debts'> {
  readonly payments: Payments;
  readonly ledger: Ledger;
  /** Epoch milliseconds. */
  now(): number;
}

/** Least milliseconds between two checks that the ledger still exists. */
const LEDGER_CHECK_INTERVAL_MS = 1000;

const ENDING = 'the request that has the payment is over, and the state does not know it yet';
const alreadyUsed = () => new Refusal(401, 'Payment already used');

/** Makes a 401 that is reported as a fault: the client is not to blame that the ledger began after its payment. */
const tooOld = (reason: string): Refusal => new Refusal(401, 'Payment too old', { reason, fault: true });

const timeOf = (milliseconds: number) => new Date(milliseconds).toISOString();

/**
 * Returns what becomes of a payment that is given back: it is free again, unless this is the fourth time that counts.
 * @param before how often it was given back before.
 */
export function refundedAs(before: number, counts: boolean): Outcome {
  const refunds = before + Number(counts);
  return refunds > MOST_REFUNDS ? { state: 'used up' } : { state: 'given back', refunds, by: undefined };
}

/** The log line for a payer who loses a payment. */
function lostOf({ about: { requestId, transaction, payer } }: Ticket): DebtLine {
  const message = 'a payment could not be given back: its payer has paid for nothing';
  return { message, fields: { requestId, transaction, payer } };
}

/** A payment that a request has redeemed. */
export interface Redeemed {
  readonly ticket: Ticket;
  /** Milliseconds for which it is remembered. */
  readonly life: number;
  /** How often it was given back before. */
  readonly refunds: number;
  /** Ends the debt to the payer, who has an answer, or has the payment back. */
  endDebt(): void;
}

/** Redeems each payment once: holds it, has it verified, redeems it, and gives it back if the request is refused. */
export class Redemptions {
  readonly #options: RedemptionsOptions;
  /**
   * Begins a lost ledger anew before the next client pays: a payment older than the ledger is refused. Checks once a second at
   * most, in the background.
   */
  readonly look: () => void;

  constructor(options: RedemptionsOptions) {
    this.#options = options;
    this.look = atMostEvery(LEDGER_CHECK_INTERVAL_MS, () => void options.ledger(true).catch(() => undefined));
  }

  /** Begins the ledger. @throws Error that says why the engine cannot keep payments safely. */
  async start(): Promise<void> {
    this.#options.payments.requireSafe();
    // `false`, because this config may never come into force.
    await this.#options.ledger(false);
  }

  /**
   * Holds, verifies and redeems a payment.
   * @param ticket the hold on the payment, whose name is the transaction and its payer.
   * @param verify looks up and checks the payment, while no other request can redeem it; throws Refusal 401.
   * @param isOver whether the request is over: its budget has ended, or its client has left.
   * @returns the redeemed payment; end it by {@link spent} or {@link refund}.
   * @throws Refusal 401 or StateUnavailable; the payment is then as it was.
   */
  async redeem(ticket: Ticket, verify: () => Promise<Mined>, isOver: () => boolean): Promise<Redeemed> {
    const { payments, ledger, debts, now } = this.#options;
    const mark = await payments.hold(ticket, OPEN_TTL_MS);
    if (mark?.by !== ticket.token) throw payments.isEnding(mark) ? unavailable(ENDING, 'engine') : alreadyUsed();
    let mayBeRedeemed = false;
    try {
      const { minedAt } = await verify();
      // Read after `verify`, because the ledger may have been begun anew meanwhile.
      const { began, life: remembered } = await ledger(true);
      if (minedAt < began)
        throw tooOld(`mined at ${timeOf(minedAt)}, before the ledger of redeemed payments began at ${timeOf(began)}`);
      mayBeRedeemed = true;
      const life = lifeUntil(minedAt, now()) + remembered;
      if (!(await payments.advance(ticket, 'redeemed', life))) throw alreadyUsed();
      if (isOver()) throw unavailable('the request ended before the payment was redeemed');
      return { ticket, life, refunds: mark.refunds, endDebt: debts.owe(lostOf(ticket)) };
    } catch (error) {
      await payments.end(ticket, mayBeRedeemed ? { debt: lostOf(ticket) } : {});
      throw error;
    }
  }

  /**
   * Gives a redeemed payment back.
   * @param counts whether this refund counts towards the three that a payment has: the payment has caused work.
   * @returns whether the payment can be used again; while the state is unreachable, as soon as it is back.
   */
  async refund({ ticket, life, refunds, endDebt }: Redeemed, counts: boolean): Promise<boolean> {
    const outcome = refundedAs(refunds, counts);
    const mark = await this.#options.payments.end(ticket, { outcome, life, debt: lostOf(ticket) });
    endDebt();
    return mark?.state !== 'used up';
  }

  /** Marks that the payment has bought its answer, or that its client left before one could be sent. */
  async spent({ ticket, life, endDebt }: Redeemed, state: 'answered' | 'left'): Promise<void> {
    endDebt();
    await this.#options.payments.end(ticket, { outcome: { state }, life });
  }
}
