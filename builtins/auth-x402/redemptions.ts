import { Refusal } from '../../plugins-sdk/index.ts';
import type { DebtLine, SharedState } from '../../plugins-sdk/state.ts';
import type { Mined } from '../shared/chain.ts';
import type { Holds } from '../shared/payment-holds.ts';
import { refusalOf, type Ticket, unavailable } from '../shared/payments.ts';
import { type Ledger, type LedgerTerms, lifeOf } from './ledger.ts';

/** A payment that a request wants to redeem. */
export interface Claimed {
  /** The transaction and its payer. */
  readonly payment: string;
  /** Says whose payment it is where he loses it. */
  readonly lost: DebtLine;
  /** Looks the payment up while nobody else can redeem it. @throws Refusal 401 */
  verify(): Promise<Mined>;
  /** Whether nobody hears any more what this comes to. */
  isOver(): boolean;
}

export interface RedemptionsOptions {
  readonly holds: Holds;
  readonly ledger: Ledger;
  /** Where payments are kept beyond the process. */
  readonly stateEngine: Pick<SharedState, 'doubts'> | undefined;
  /** Epoch milliseconds. */
  now(): number;
}

/** Milliseconds that clocks of replicas may differ, with some more. */
const CLOCK_MARGIN_MS = 900_000;
/** Milliseconds between two looks whether the ledger is still there. */
const LEDGER_CHECK_INTERVAL_MS = 1000;

function alreadyUsed(): Refusal {
  return new Refusal(401, 'Payment already used');
}

/** No fault of the client's: the operator is told. */
function tooOld(reason: string): Refusal {
  return new Refusal(401, 'Payment too old', { reason, fault: true });
}

const timeOf = (milliseconds: number) => new Date(milliseconds).toISOString();

/** Redeems each payment once: reserves it, has it looked up, redeems it, and gives it back when the request is refused. */
export class Redemptions {
  readonly #options: RedemptionsOptions;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(options: RedemptionsOptions) {
    this.#options = options;
  }

  /** Begins the ledger. @throws Error that says why payments cannot be kept where they are to be. */
  async start(): Promise<void> {
    const doubts = this.#options.stateEngine?.doubts() ?? [];
    if (doubts.length > 0) throw new Error(doubts.join('; '));
    await this.#options.ledger.terms();
  }

  /**
   * Sees to it that the ledger is there before somebody pays, lest what he pays is older than the ledger. Asked often, it looks
   * now and then.
   */
  look(): void {
    const { stateEngine, ledger } = this.#options;
    if (stateEngine === undefined || performance.now() - this.#lookedAt < LEDGER_CHECK_INTERVAL_MS) return;
    this.#lookedAt = performance.now();
    ledger.terms().catch(() => undefined);
  }

  /**
   * @returns the hold on the payment, by which it can be given back.
   * @throws Refusal 401, and the payment is as it was.
   */
  async redeem({ payment, lost, verify, isOver }: Claimed): Promise<Ticket> {
    const { holds, ledger, stateEngine } = this.#options;
    const [doubt] = stateEngine?.doubts() ?? [];
    if (doubt !== undefined) throw unavailable(doubt, 'engine');
    const ticket = await holds.reserve(payment);
    if (typeof ticket === 'string') throw alreadyUsed();
    let mayBeRedeemed = false;
    try {
      const { minedAt } = await verify();
      // Only now, since the ledger may have been begun anew or its life raised meanwhile.
      const terms = await ledger.terms();
      this.#checkAge(minedAt, terms);
      mayBeRedeemed = true;
      if (!(await holds.confirm(ticket, this.#remaining(minedAt, terms)))) throw alreadyUsed();
      if (isOver()) throw unavailable('the request ended before the payment was redeemed');
      return ticket;
    } catch (error) {
      await holds.release(ticket, mayBeRedeemed ? lost : undefined);
      throw refusalOf(error);
    }
  }

  /**
   * Gives a redeemed payment back.
   * @param counts whether something was done for it.
   * @returns whether it can be used again; where the state is away, once that is back.
   */
  async refund(ticket: Ticket, counts: boolean, lost: DebtLine): Promise<boolean> {
    const { holds, ledger } = this.#options;
    let given = true;
    const refund = async () => {
      given = await holds.payments.refund(ticket, (await ledger.terms()).life + CLOCK_MARGIN_MS, counts);
    };
    await holds.end(ticket, refund, lost);
    return given;
  }

  #checkAge(minedAt: number, terms: LedgerTerms): void {
    const life = lifeOf(terms, minedAt);
    if (life < 0) {
      const [mined, began] = [timeOf(minedAt), timeOf(terms.began)];
      throw tooOld(`mined at ${mined}, before the ledger of redeemed payments began at ${began}`);
    }
    if (this.#options.now() > minedAt + life)
      throw tooOld('it may have been redeemed by an earlier config that remembered it for a shorter time');
  }

  /** Nothing is forgotten while any endpoint could still accept it. */
  #remaining(minedAt: number, { life }: LedgerTerms): number {
    return Math.max(minedAt - this.#options.now(), 0) + life + CLOCK_MARGIN_MS;
  }
}
