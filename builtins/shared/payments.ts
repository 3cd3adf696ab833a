/** How a request holds a payment, says what it does with it and gives it up, whatever fails: of both schemes, in one mark each. */
import { randomId } from '../../lib/eth/random-id.ts';
import { type Log, Refusal, type Services } from '../../plugins-sdk/index.ts';
import type { FailureClass } from '../../plugins-sdk/observe.ts';
import {
  type DebtLine,
  type Debts,
  MemoryArea,
  type SharedState,
  type StateArea,
  StateKey,
  StateUnavailable,
  update,
} from '../../plugins-sdk/state.ts';
import { OPEN_TTL_MS, paymentIndex } from './payment-index.ts';
import { type About, heldIn, isOpen, type Mark, markIn, type Payment, type Ticket } from './payment-mark.ts';

/** Under which payments of an auth type are kept in the process, where no engine is. */
export function paymentKeys(type: string) {
  const key = (what: string) => new StateKey<MemoryArea>(`${type} ${what}`, { lasting: true });
  const ending = new StateKey<Set<string>>(`${type} ending`, { lasting: true });
  return { type, marks: key('payments'), ids: key('payment ids'), ending };
}

/** Where the service keeps what is known of payments: in the engine, else in the process. */
export function areaIn({ stateEngine, states, now }: Services, name: string, key: StateKey<MemoryArea>): StateArea {
  return stateEngine?.area(name) ?? states.keep(key, '', () => new MemoryArea({ now }));
}

export interface PaymentsOptions {
  readonly area: StateArea;
  /** Which payments a transaction or nonce belongs to. */
  readonly index: StateArea;
  /** Tokens of this process's requests whose hold could not be ended yet, kept over a reload. */
  readonly ending: Set<string>;
  /** Where payments are kept beyond the process. */
  readonly stateEngine?: Pick<SharedState, 'available'> | undefined;
  readonly debts: Debts;
  readonly log: Log;
}

/** How a hold ends. */
export interface End {
  /** What is to stand there. */
  readonly change: (mark: Mark) => Mark | undefined;
  /** Milliseconds for which that is remembered; by default as long as what stands there. */
  readonly life?: number;
  /** Whether it is so even where the engine has lost the mark. */
  readonly isCertain?: boolean;
  /** Whether the hold may yet be written, since its answer is missing: what that leaves stays listed. */
  readonly isDoubtful?: boolean;
  /** For the log where that fails for good and a payer loses what he has paid. */
  readonly lost?: DebtLine | undefined;
}

/** Milliseconds for which an ended payment is remembered at least. */
const ENDED_TTL_MS = 3_600_000;
/** Milliseconds between two tries to end a hold, and how often it is tried. */
const RETRY_DELAY_MS = 1000;
const RETRIES = 120;

const lasting = (life = 0) => Math.max(life, ENDED_TTL_MS);

/** The refusal of a request that goes on after its payment was given back, as a mode that makes several answers may. */
export const givenBack = () => new Refusal(402, 'Payment required', { reason: 'the payment was given back' });

/** It cannot be known whether the payment is good; the client may retry. @param fault `false` where the client may be to blame. */
export function unavailable(reason: string, failureClass?: FailureClass, fault = true): Refusal {
  return new Refusal(401, 'Payment verification unavailable', { reason, failureClass, fault });
}

/** What clients are told by it. */
export const { message: UNAVAILABLE } = unavailable('');

/** A refusal in the place of a failure of the state; anything else as it is. */
export function refusalOf(error: unknown): unknown {
  return error instanceof StateUnavailable ? unavailable(error.message, 'engine') : error;
}

/** A hold on a payment, yet to be taken. @param payment its name, in hex of either case. */
export function ticketFor(payment: string, about: About): Ticket {
  return { payment: payment.toLowerCase(), token: randomId(), about };
}

/**
 * The payments of one scheme, so that each is redeemed once, by whatever process shares the state.
 *
 * A request holds the payment before it asks anybody about it. It says what it does with it (`advance`), and ends its hold: by what
 * the payment has bought (`end`), or because it came to nothing (`release`). What a process that died has left stays for operators
 * to see (`open`). A payment is named by its payer, too, so that no other one's hold may stand in his way.
 */
export class Payments {
  readonly #options: PaymentsOptions;
  readonly index: ReturnType<typeof paymentIndex>;

  constructor(options: PaymentsOptions) {
    this.#options = options;
    this.index = paymentIndex(options.area, options.index, options.log);
  }

  /** The payments of a service. */
  static in(services: Services, { type, marks, ids, ending: kept }: ReturnType<typeof paymentKeys>): Payments {
    const area = areaIn(services, type, marks);
    const ending = services.states.keep(kept, '', () => new Set<string>());
    return new Payments({ ...services, area, ending, index: areaIn(services, `${type} ids`, ids) });
  }

  /** Where the marks are. */
  get area(): StateArea {
    return this.#options.area;
  }

  /**
   * Holds a payment. Of racing requests one gets it.
   * @param life milliseconds after which it is free although its process has died.
   * @returns how the payment stands: with the token of this request, or of another one that has or had it.
   * @throws Refusal 401 where nobody can tell.
   */
  async hold(ticket: Ticket, life: number): Promise<Mark | undefined> {
    const { area, stateEngine: engine } = this.#options;
    // An engine that is away is sent nothing, so that there is nothing to give back.
    const isAsked = engine?.available() ?? true;
    try {
      // In this order: whatever a crash leaves held is listed.
      await this.index.begin(ticket);
      const options = { ttl: life, keepLonger: true, durable: true };
      const mark = markIn(await update(area, ticket.payment, (text) => heldIn(text, ticket), options));
      if (mark?.by !== ticket.token) await this.index.end(ticket);
      return mark;
    } catch (error) {
      if (isAsked) await this.end(ticket, { change: ({ before }) => before, isDoubtful: engine !== undefined });
      throw refusalOf(error);
    }
  }

  /**
   * Says what is done with a payment that is held.
   * @returns `false`, and nothing has changed, where the request has it no more: it must be refused.
   */
  async advance(ticket: Ticket, state: 'redeemed' | 'settling', life: number): Promise<boolean> {
    const change = (mark: Mark): Mark => ({ ...mark, state });
    const mark = await this.#change(ticket, { change, life: Math.max(life, OPEN_TTL_MS) });
    return mark?.by === ticket.token;
  }

  /** Ends the hold of a request that came to nothing: the payment is as it was before. @param lost as {@link End} has it. */
  async release(ticket: Ticket, lost?: DebtLine): Promise<void> {
    await this.end(ticket, { change: ({ before }) => before, lost });
  }

  /**
   * Ends a hold: at once, and where that fails again and again in the background, since a command without an answer may yet be done.
   * @returns the mark; nothing where there is none, or it is not known yet.
   */
  async end(ticket: Ticket, { lost, ...how }: End): Promise<Mark | undefined> {
    const end = async () => {
      const mark = await this.#change(ticket, how);
      if (!how.isDoubtful) await this.#list(ticket, mark, how.life);
      return mark;
    };
    try {
      return await end();
    } catch (error) {
      void this.#endLater(ticket, end, lost && { ...lost, fields: { ...lost.fields, error: String(error) } });
      return undefined;
    }
  }

  /** Whether the request that has the payment is over, and only the state does not know it yet. */
  isEnding(mark?: Mark): boolean {
    return this.#options.ending.has(mark?.by ?? '');
  }

  /** The payments that are known by a transaction or a nonce. */
  async find(id: string): Promise<readonly Payment[]> {
    const open = (await this.index.open()).filter((name) => name.includes(id.toLowerCase()));
    return this.#payments([...(await this.index.names(id)), ...open]);
  }

  /** The payments of which no end is known. */
  async open(): Promise<readonly Payment[]> {
    return (await this.#payments(await this.index.open())).filter(isOpen);
  }

  /** Changes a payment for an operator. @returns `false`, and nothing has changed, where it stands otherwise by now. */
  async replace({ payment, ...seen }: Payment, next: Mark, life: number): Promise<boolean> {
    const [before, after] = [JSON.stringify(seen), JSON.stringify(next)];
    const options = { ttl: lasting(life), durable: true };
    const isReplaced = (await this.#options.area.compareAndSet(payment, before, after, options)) === undefined;
    // An entry that stays costs a look; what was changed is changed.
    if (isReplaced) await this.#list({ payment, token: seen.listed ?? '' }, next, life).catch(() => undefined);
    return isReplaced;
  }

  /**
   * A request has ended: its payment is found by its ids while it is remembered. What it leaves open stays listed, once.
   * @param mark that stands there now.
   */
  async #list({ payment, token }: Pick<Ticket, 'payment' | 'token'>, mark?: Mark, life?: number): Promise<void> {
    if (mark !== undefined && life !== undefined) await this.index.add(mark, payment, lasting(life));
    const isListed = mark !== undefined && isOpen(mark);
    const listed = mark?.listed ?? token;
    if (!isListed || listed !== token) await this.index.end({ payment, token });
    if (!isListed && listed !== token) await this.index.end({ payment, token: listed });
  }

  /** Changes the mark of a request that has the payment; another one's stays as it is. */
  async #change(
    { payment, token, about }: Ticket,
    { change, life, isCertain = false }: End,
  ): Promise<Mark | undefined> {
    const lost: Mark = { ...about, state: 'held', by: token, listed: token, refunds: 0 };
    const own = (text: string | undefined) => {
      const mark = text === undefined && isCertain ? lost : markIn(text);
      if (mark?.by !== token) return text;
      const changed = change(mark);
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
