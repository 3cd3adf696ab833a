/** Holds a payment for a request, records its use and ends the hold, whatever fails. Both schemes share one record, the mark. */
import { Refusal, type Services } from '../../plugins-sdk/index.ts';
import type { FailureClass } from '../../plugins-sdk/observe.ts';
import {
  type DebtLine,
  MemoryArea,
  type SharedState,
  type StateArea,
  StateKey,
  StateUnavailable,
  update,
} from '../../plugins-sdk/state.ts';
import { OPEN_TTL_MS, paymentIndex } from './payment-index.ts';
import { endedAs, heldIn, isOpen, type Mark, markIn, type Outcome, type Payment, type Ticket } from './payment-mark.ts';

/** Makes the state keys for payments of an auth type that are kept in the process, without an engine. */
export function paymentKeys(type: string) {
  const key = (what: string) => new StateKey<MemoryArea>(`${type} ${what}`, { lasting: true });
  const ending = new StateKey<Set<string>>(`${type} ending`, { lasting: true });
  return { type, marks: key('payments'), ids: key('payment ids'), ending };
}

/** Returns the area that keeps payments: the engine's, or one in the process. */
export function areaIn({ stateEngine, states, now }: Services, name: string, key: StateKey<MemoryArea>): StateArea {
  return stateEngine?.area(name) ?? states.keep(key, '', () => new MemoryArea({ now }));
}

/** The parts that payments are kept and reported with. */
export interface PaymentsOptions extends Pick<Services, 'debts' | 'log'> {
  readonly area: StateArea;
  /** The area of the index by transaction and nonce. */
  readonly index: StateArea;
  /** Tokens of requests whose hold could not be ended yet, kept over a reload. */
  readonly ending: Set<string>;
  /** The engine that keeps payments beyond the process. */
  readonly stateEngine?: Pick<SharedState, 'available' | 'doubts'> | undefined;
}

/** The end of a hold. */
export interface End {
  /** What becomes of the payment; without it, the mark before the hold is restored. */
  readonly outcome?: Outcome;
  /** Milliseconds for which the new mark is kept; by default as long as the old one would be. */
  readonly life?: number;
  /** Whether the hold may still be written later, because its command got no answer. Then the payment stays listed. */
  readonly isDoubtful?: boolean;
  /** The log line for the case that the end is never written and the payer loses the payment. */
  readonly debt?: DebtLine;
}

/** The least milliseconds for which an ended payment is remembered. */
const ENDED_TTL_MS = 3_600_000;
/** Milliseconds between two attempts to end a hold, and the most attempts. */
const RETRY_DELAY_MS = 1000;
const RETRIES = 120;

const lasting = (life = 0) => Math.max(life, ENDED_TTL_MS);

/** Makes the refusal of a payment that could not be checked; clients may retry. @param fault `false` if they may be to blame. */
export function unavailable(reason: string, failureClass?: FailureClass, fault = true): Refusal {
  return new Refusal(401, 'Payment verification unavailable', { reason, failureClass, fault });
}

/** The text of that refusal. */
export const { message: UNAVAILABLE } = unavailable('');

/** Turns a failure of the state engine into a refusal; returns any other error as it is. */
export function refusalOf(error: unknown): unknown {
  return error instanceof StateUnavailable ? unavailable(error.message, 'engine') : error;
}

/**
 * The payments of one scheme. Each is redeemed once, among all processes that share the state.
 *
 * A request holds the payment before it asks anyone about it. It records its use (`advance`), and ends the hold: with the
 * outcome, or by giving the payment up (`end`). If a process dies, its payments stay listed for operators (`open`).
 * A payment's name includes its payer, so that no stranger's hold can block it.
 */
export class Payments {
  readonly #options: PaymentsOptions;
  readonly index: ReturnType<typeof paymentIndex>;

  constructor(options: PaymentsOptions) {
    this.#options = options;
    this.index = paymentIndex(options.area, options.index, options.log);
  }

  /** Returns the payments of a service, with their state in the engine or in the process. */
  static in(services: Services, { type, marks, ids, ending: kept }: ReturnType<typeof paymentKeys>): Payments {
    const area = areaIn(services, type, marks);
    const ending = services.states.keep(kept, '', () => new Set<string>());
    return new Payments({ ...services, area, ending, index: areaIn(services, `${type} ids`, ids) });
  }

  /** @throws StateUnavailable that says why the engine cannot keep payments safely. */
  requireSafe(): void {
    const doubts = this.#options.stateEngine?.doubts() ?? [];
    if (doubts.length > 0) throw new StateUnavailable(doubts.join('; '));
  }

  /** The area with the marks. */
  get area(): StateArea {
    return this.#options.area;
  }

  /**
   * Holds a payment. Of racing requests one gets it.
   * @param life milliseconds after which the payment is free even if its process died.
   * @returns the mark, with the token of this request, or of another one that holds or has used the payment.
   * @throws StateUnavailable, also if the engine holds a record that is no mark.
   */
  async hold(ticket: Ticket, life: number): Promise<Mark | undefined> {
    this.requireSafe();
    const { area, stateEngine: engine } = this.#options;
    // An engine that was away got no command, so there is no hold to end.
    const isAsked = engine?.available() ?? true;
    try {
      // Listed first, so that a crash leaves no held payment unlisted.
      await this.index.begin(ticket);
      const options = { ttl: life, keepLonger: true, durable: true };
      const mark = markIn(await update(area, ticket.payment, (text) => heldIn(text, ticket), options));
      if (mark?.by !== ticket.token) await this.index.end(ticket);
      return mark;
    } catch (error) {
      if (isAsked) await this.end(ticket, { isDoubtful: engine !== undefined });
      throw error;
    }
  }

  /**
   * Records the use of a held payment.
   * @returns `false`, with nothing changed, if the request does not hold it any more: the request must be refused.
   */
  async advance(ticket: Ticket, state: 'redeemed' | 'settling', life: number): Promise<boolean> {
    const mark = await this.#change(ticket, Math.max(life, OPEN_TTL_MS), (held) => held && { ...held, state });
    return mark?.by === ticket.token;
  }

  /**
   * Ends a hold. If that fails, it is repeated in the background, since a command without an answer may still be done.
   * @returns the mark; undefined if there is none, or the end is not written yet.
   */
  async end(ticket: Ticket, { outcome, life, isDoubtful, debt }: End = {}): Promise<Mark | undefined> {
    const { token, about } = ticket;
    const lost: Mark = { ...about, state: 'held', by: token, listed: token, refunds: 0 };
    const end = async () => {
      const mark = await this.#change(ticket, life, (held = lost) => (outcome ? endedAs(held, outcome) : held.before));
      if (!isDoubtful) await this.#list(ticket, mark, life);
      return mark;
    };
    try {
      return await end();
    } catch (error) {
      void this.#endLater(ticket, end, debt && { ...debt, fields: { ...debt.fields, error: String(error) } });
      return undefined;
    }
  }

  /** Returns whether the request that holds the payment is over, but its end is not written yet. */
  isEnding(mark?: Mark): boolean {
    return this.#options.ending.has(mark?.by ?? '');
  }

  /** Finds payments by a transaction or a nonce. */
  async find(id: string): Promise<readonly Payment[]> {
    const open = (await this.index.open()).filter((name) => name.includes(id.toLowerCase()));
    return this.#payments([...(await this.index.names(id)), ...open]);
  }

  /** Returns the payments without a known end. */
  async open(): Promise<readonly Payment[]> {
    return (await this.#payments(await this.index.open())).filter(isOpen);
  }

  /** Writes what becomes of a payment, for an operator. @returns `false`, with nothing changed, if the mark is another one by then. */
  async replace({ payment, ...seen }: Payment, outcome: Outcome, life: number): Promise<boolean> {
    const [before, after] = [JSON.stringify(seen), JSON.stringify(endedAs(seen, outcome))];
    const options = { ttl: lasting(life), durable: true };
    const isReplaced = (await this.#options.area.compareAndSet(payment, before, after, options)) === undefined;
    // A failure only leaves an entry in the list; the mark is changed.
    if (isReplaced) await this.#list({ payment, token: seen.listed ?? '' }, markIn(after), life).catch(() => undefined);
    return isReplaced;
  }

  /**
   * Updates the index after a request: an ended payment can be found by its IDs, and an open one stays listed, once.
   * @param mark the mark as it is stored.
   */
  async #list({ payment, token }: Pick<Ticket, 'payment' | 'token'>, mark?: Mark, life?: number): Promise<void> {
    const { listed = token } = mark ?? {};
    const kept = mark !== undefined && isOpen(mark) ? listed : undefined;
    if (mark !== undefined && life !== undefined) await this.index.add(mark, payment, lasting(life));
    for (const each of new Set([token, listed])) if (each !== kept) await this.index.end({ payment, token: each });
  }

  /**
   * Changes the mark if the ticket's request holds the payment; leaves another request's mark as it is.
   * @param next gets the mark, if the engine has not lost it, and returns the new one; undefined deletes it.
   */
  async #change({ payment, token }: Ticket, life: number | undefined, next: (mark?: Mark) => object | undefined) {
    const own = (text: string | undefined) => {
      const mark = markIn(text);
      if (text !== undefined && mark?.by !== token) return text;
      const changed = next(mark);
      return changed && JSON.stringify(changed);
    };
    const options = { ttl: lasting(life), keepLonger: life === undefined, durable: true };
    return markIn(await update(this.#options.area, payment, own, options));
  }

  async #payments(names: readonly string[]): Promise<Payment[]> {
    const marks = [...new Set(names)].map(async (payment) => {
      const mark = markIn(await this.#options.area.get(payment));
      return mark === undefined ? [] : [{ payment, ...mark }];
    });
    return (await Promise.all(marks)).flat();
  }

  async #endLater({ token }: Ticket, end: () => Promise<unknown>, lost?: DebtLine): Promise<void> {
    const { debts, ending, log } = this.#options;
    const paid = debts.owe(lost);
    ending.add(token);
    let isDone = false;
    for (let tries = 0; tries < RETRIES && !isDone; tries += 1) {
      await new Promise((done) => setTimeout(done, RETRY_DELAY_MS).unref());
      const [ended] = await Promise.allSettled([end()]);
      isDone = ended.status === 'fulfilled';
    }
    // A request may hear of the hold from an engine that knows its end by now.
    setTimeout(() => ending.delete(token), RETRY_DELAY_MS).unref();
    paid();
    if (lost !== undefined && !isDone) log.error(lost.message, lost.fields);
  }
}
