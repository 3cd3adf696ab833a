import type { Log } from '../../plugins-sdk/index.ts';
import type { DebtLine, Debts, SharedState, StateArea } from '../../plugins-sdk/state.ts';
import { Payments, refusalOf, type Taken, type Ticket, ticketFor } from './payments.ts';

/** Milliseconds after which a payment is free again whose process died, and between two renewals by one that lives. */
const LEASE_MS = 30_000;
const RENEWAL_INTERVAL_MS = 10_000;
/** Milliseconds between two tries to end a hold, and how often it is tried. */
const RETRY_DELAY_MS = 1000;
const RETRIES = 120;

export interface HoldsOptions {
  readonly area: StateArea;
  /** Where payments are kept beyond the process. */
  readonly stateEngine: Pick<SharedState, 'available'> | undefined;
  readonly debts: Debts;
  readonly log: Log;
}

/**
 * The payments that requests of this process hold. Each reservation is renewed until it ends, and each end is tried again while
 * the state is away, over a reload and over a stop.
 */
export class Holds {
  readonly payments: Payments;
  readonly #options: HoldsOptions;
  readonly #held = new Set<Ticket>();
  #renewing: NodeJS.Timeout | undefined;

  constructor(options: HoldsOptions) {
    this.#options = options;
    this.payments = new Payments(options.area);
  }

  /**
   * Reserves a payment.
   * @param payment as {@link ticketFor} takes it.
   * @returns the hold, which has to end; or how the payment stands that another request has or had.
   * @throws Refusal 401 where nobody can tell.
   */
  async reserve(payment: string): Promise<Ticket | Taken> {
    const ticket = ticketFor(payment);
    // An engine that is away is sent nothing, so that there is nothing to give back.
    const isAsked = this.#options.stateEngine?.available() ?? true;
    try {
      const taken = await this.payments.reserve(ticket, LEASE_MS);
      if (taken !== undefined) return taken;
    } catch (error) {
      if (isAsked) await this.release(ticket);
      throw refusalOf(error);
    }
    this.#held.add(ticket);
    this.#renewing ??= setInterval(() => this.#renew(), RENEWAL_INTERVAL_MS).unref();
    return ticket;
  }

  /** Ends a hold by a redemption. @returns `false` when it was lost. */
  confirm(ticket: Ticket, life: number): Promise<boolean> {
    this.#drop(ticket);
    return this.payments.confirm(ticket, life);
  }

  /** Ends a hold of a request that came to nothing. @param lost as {@link end} takes it. */
  release(ticket: Ticket, lost?: DebtLine): Promise<void> {
    return this.end(ticket, () => this.payments.release(ticket), lost);
  }

  /**
   * Ends a hold: once now, and where that fails again and again in the background, since a command without an answer may yet be done.
   * @param lost for the log where that fails for good and a payer loses what he has paid; a mere reservation ends by itself.
   */
  async end(ticket: Ticket, how: () => Promise<unknown>, lost?: DebtLine): Promise<void> {
    this.#drop(ticket);
    try {
      await how();
    } catch (error) {
      void this.#endLater(how, lost && { ...lost, fields: { ...lost.fields, error: String(error) } });
    }
  }

  async #endLater(how: () => Promise<unknown>, lost?: DebtLine): Promise<void> {
    const { debts, log } = this.#options;
    const end = debts.owe(lost);
    for (let tries = 0; tries < RETRIES; tries += 1) {
      await new Promise((done) => setTimeout(done, RETRY_DELAY_MS).unref());
      const isDone = await how().then(
        () => true,
        () => false,
      );
      if (isDone) return end();
    }
    end();
    if (lost !== undefined) log.error(lost.message, lost.fields);
  }

  #drop(ticket: Ticket): void {
    this.#held.delete(ticket);
    if (this.#held.size > 0) return;
    clearInterval(this.#renewing);
    this.#renewing = undefined;
  }

  /** What cannot be renewed now is soon; what was lost is found out by its request. */
  #renew(): void {
    for (const ticket of this.#held) this.payments.renew(ticket, LEASE_MS).catch(() => undefined);
  }
}
