import { isRefusal, type Log, Refusal, type SharedState, StateUnavailable } from '../../plugins-sdk/index.ts';
import { type Payments, type Ticket, ticketFor } from '../../plugins-sdk/payments.ts';
import type { Mined } from './chain.ts';
import { type Ledger, type LedgerTerms, lifeOf } from './ledger.ts';

export interface RedemptionsOptions {
  readonly payments: Payments;
  readonly ledger: Ledger;
  /** Where payments are kept beyond the process. */
  readonly shared: Pick<SharedState, 'available' | 'doubts'> | undefined;
  /** Milliseconds for which a request may hold a payment that it has not redeemed. */
  readonly lease: number;
  /** Epoch milliseconds. */
  now(): number;
  readonly log: Log;
}

/** Milliseconds that clocks of replicas may differ, with some more. */
const MARGIN = 900_000;
/** Milliseconds between two looks whether the ledger is still there. */
const LOOK = 1000;
/** Milliseconds between two tries to give a payment back, and how often it is tried. */
const RETRY = 1000;
const RETRIES = 120;

/** The payment could not be looked up: no fault of the client's. */
export function unavailable(reason: string): Refusal {
  return new Refusal(401, 'Payment verification unavailable', { reason, fault: true });
}

function alreadyUsed(): Refusal {
  return new Refusal(401, 'Payment already used');
}

function tooOld(reason: string): Refusal {
  return new Refusal(401, 'Payment too old', { reason });
}

/** Redeems each payment once: reserves it, has it looked up, redeems it, and gives it back when the request is refused. */
export class Redemptions {
  readonly #options: RedemptionsOptions;
  /** Payments that are still to be given back. */
  #owed = 0;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(options: RedemptionsOptions) {
    this.#options = options;
  }

  /** Begins the ledger. @throws Error that says why payments cannot be kept where they are to be. */
  async start(): Promise<void> {
    const doubts = this.#options.shared?.doubts() ?? [];
    if (doubts.length > 0) throw new Error(doubts.join('; '));
    await this.#options.ledger.terms();
  }

  /**
   * Sees to it that the ledger is there before somebody pays, lest what he pays is older than the ledger. Asked often, it looks
   * now and then.
   */
  look(): void {
    const { shared, ledger } = this.#options;
    if (shared === undefined || performance.now() - this.#lookedAt < LOOK) return;
    this.#lookedAt = performance.now();
    ledger.terms().catch(() => undefined);
  }

  /** What is still to be given back is, as long as the process lives: a reload must cost no payer his payment. */
  stop(): void {
    if (this.#owed > 0) this.#options.log.warn('payments are still to be given back', { payments: this.#owed });
  }

  /**
   * @param verify looks the payment up while nobody else can redeem it.
   * @param isOver whether nobody hears any more what this comes to.
   * @returns the hold on the payment, by which it can be given back.
   * @throws Refusal 401, and the payment is as it was.
   */
  async redeem(payment: string, verify: () => Promise<Mined>, isOver = () => false): Promise<Ticket> {
    const { payments, ledger, lease, shared } = this.#options;
    const [doubt] = shared?.doubts() ?? [];
    if (doubt !== undefined) throw unavailable(doubt);
    const ticket = ticketFor(payment);
    let mayBeRedeemed = false;
    const giveBack = async (error: unknown): Promise<never> => {
      await this.#insist(() => payments.release(ticket), mayBeRedeemed ? {} : undefined);
      return refuse(error);
    };
    // An engine that is away is sent nothing, so that there is nothing to give back.
    const isAsked = shared?.available() ?? true;
    if (!(await payments.reserve(ticket, lease).catch(isAsked ? giveBack : refuse))) throw alreadyUsed();
    try {
      const { minedAt } = await verify();
      // Only now, since the ledger may have been begun anew or its life raised meanwhile.
      const terms = await ledger.terms();
      this.#checkAge(minedAt, terms);
      mayBeRedeemed = true;
      if (!(await payments.confirm(ticket, this.#remaining(minedAt, terms)))) throw alreadyUsed();
      if (isOver()) throw unavailable('the request ended before the payment was redeemed');
      return ticket;
    } catch (error) {
      return giveBack(error);
    }
  }

  /**
   * Gives a redeemed payment back.
   * @param counts whether something was done for it.
   * @returns whether it can be used again; where the state is away, once that is back.
   */
  async refund(ticket: Ticket, counts: boolean, requestId: string): Promise<boolean> {
    const { payments, ledger, log } = this.#options;
    let given = true;
    await this.#insist(
      async () => {
        given = await payments.refund(ticket, (await ledger.terms()).life + MARGIN, counts);
      },
      { requestId },
    );
    if (!given) log.warn('a payment was not given back once more', { requestId });
    return given;
  }

  #checkAge(minedAt: number, terms: LedgerTerms): void {
    const life = lifeOf(terms, minedAt);
    if (life < 0) throw tooOld('mined before the ledger of redeemed payments began');
    if (this.#options.now() > minedAt + life)
      throw tooOld('it may have been redeemed by an earlier config that remembered it for a shorter time');
  }

  /** Nothing is forgotten while any endpoint could still accept it. */
  #remaining(minedAt: number, { life }: LedgerTerms): number {
    return Math.max(minedAt - this.#options.now(), 0) + life + MARGIN;
  }

  /**
   * Once now, and where that fails again and again in the background: a command without an answer may yet be done.
   * @param fields for the log where a payer may lose what he has paid; a mere reservation ends by itself.
   */
  async #insist(give: () => Promise<void>, fields?: Readonly<Record<string, unknown>>): Promise<void> {
    try {
      await give();
    } catch (error) {
      if (fields === undefined) void this.#later(give);
      else void this.#owe(give, { ...fields, error: String(error) });
    }
  }

  async #owe(give: () => Promise<void>, fields: Readonly<Record<string, unknown>>): Promise<void> {
    this.#owed += 1;
    const given = await this.#later(give);
    this.#owed -= 1;
    if (!given) this.#options.log.error('a payment could not be given back: its payer has paid for nothing', fields);
  }

  async #later(give: () => Promise<void>): Promise<boolean> {
    for (let tries = 0; tries < RETRIES; tries += 1) {
      await new Promise((done) => setTimeout(done, RETRY).unref());
      const done = await give().then(
        () => true,
        () => false,
      );
      if (done) return true;
    }
    return false;
  }
}

/** @throws Refusal in place of a failure of the state. */
function refuse(error: unknown): never {
  if (isRefusal(error) || !(error instanceof StateUnavailable)) throw error;
  throw unavailable(error.message);
}
