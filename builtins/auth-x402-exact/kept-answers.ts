import { hash } from 'node:crypto';
import { isSameHex } from '../../lib/eth/hex.ts';
import { isRecord, jsonIn } from '../../lib/json/value.ts';
import { answerHeaders, type Exchange, type Log, Refusal, SignedResponse } from '../../plugins-sdk/index.ts';
import {
  type BucketLimit,
  type CompareAndSetOptions,
  type Conflict,
  type StateArea,
  StateUnavailable,
  StateUnreadable,
} from '../../plugins-sdk/state.ts';
import { idOf, type Payment } from './payload.ts';

/** What stands under a key of a payer, from the moment his payment was found good. */
interface Bought {
  /** The authorisation that pays. */
  readonly payment: string;
  /** The hash of its signature: who has both is who has paid. */
  readonly signature: string;
  /** What is there once it was settled. */
  readonly sold?: Sold;
}

/** A settled payment's answer. */
export interface Sold {
  /** Of the question. */
  readonly fingerprint: string;
  /** JSON; absent where it was not kept. */
  readonly answer?: string;
  /** Why it was not. */
  readonly unkept?: string;
  /** `PAYMENT-RESPONSE` */
  readonly settled: string;
}

/** Milliseconds for which an answer is given again. */
export const KEPT_MS = 3_600_000;
/** Milliseconds after the end of an authorisation in which it may be settled yet: clocks differ. */
const MARGIN_MS = 60_000;
/** Characters of an answer that is kept. */
const LONGEST_ANSWER = 32_768;

/** What clients are told of answers that are not there, or of what cannot be bought. */
export const OTHER_REQUEST = 'Payment identifier was used for another request';
export const TOO_LONG = 'The answer is too long to be given again';
export const NO_ROOM = 'The answer was not kept: too much was sold within an hour';
export const FORMER_SIGNER = 'The answer is of a former signer and is not given again';

/** Keys that a process holds where no engine does. */
export const MOST_KEYS = 16_384;
/** What may be added at once, and flows in again within the time that answers are kept: twice that is there at most. */
const limits = {
  payerKeys: { max: MOST_KEYS / 8, window: KEPT_MS },
  payerBytes: { max: 8 * 1024 * 1024, window: KEPT_MS },
  allBytes: { max: 64 * 1024 * 1024, window: KEPT_MS },
};

export interface KeptAnswersOptions {
  readonly area: StateArea;
  /** Whether this process alone keeps them, where there is room for just so many. */
  readonly isInMemory: boolean;
  readonly log: Log;
}

/** The answers that payers may have again by their identifiers. */
export class KeptAnswers {
  readonly #options: KeptAnswersOptions;

  constructor(options: KeptAnswersOptions) {
    this.#options = options;
  }

  get area(): StateArea {
    return this.#options.area;
  }

  get log(): Log {
    return this.#options.log;
  }

  /** @throws StateUnavailable */
  async find(key: string): Promise<Bought | undefined> {
    const text = await this.area.get(key);
    return text === undefined ? undefined : boughtIn(text, key);
  }

  /** Writes what is to stand under a new key. @returns `full` where no place is left. @throws StateUnavailable */
  claim(key: string, text: string, options: CompareAndSetOptions): Promise<Conflict | 'full' | undefined> {
    return this.#orFull(this.area.compareAndSet(key, undefined, text, options));
  }

  /** Takes a place of the payer's share. */
  async takePlace(payer: string): Promise<boolean> {
    return !this.#options.isInMemory || this.#take(`keys of ${payer}`, limits.payerKeys, 1);
  }

  /** Takes room for an answer, of the payer's share and of all. @throws StateUnavailable */
  async takeBytes(payer: string, bytes: number): Promise<boolean> {
    const own = await this.#take(`bytes of ${payer}`, limits.payerBytes, bytes);
    return own && this.#take('bytes', limits.allBytes, bytes);
  }

  async #take(key: string, limit: BucketLimit, n: number): Promise<boolean> {
    const taken = await this.#orFull(this.area.takeTokens(key, limit, n));
    return taken !== 'full' && taken.granted === n;
  }

  /** Memory is never away: it is full, of the payments of others. */
  async #orFull<T>(work: Promise<T>): Promise<T | 'full'> {
    try {
      return await work;
    } catch (error) {
      if (this.#options.isInMemory && error instanceof StateUnavailable) return 'full';
      throw error;
    }
  }
}

/** @throws StateUnreadable */
function boughtIn(text: string, key: string): Bought {
  const bought = jsonIn(text);
  if (isRecord(bought)) return bought as unknown as Bought;
  throw new StateUnreadable(`x402-exact identifiers ${key}`);
}

/** One purchase under one key, until it is certain what became of its payment. */
export class Entry {
  /** Whether it may take room. */
  #isClaimed = false;
  readonly #kept: KeptAnswers;
  readonly #key: string;
  readonly #payer: string;
  readonly #bought: Bought;
  readonly #life: number;
  /** Of what is asked. */
  fingerprint: string | undefined;

  /** @param key one payer's: nobody gets by it what another one has paid. @param now epoch milliseconds. */
  constructor(kept: KeptAnswers, payment: Payment, key: string, now: number) {
    this.#kept = kept;
    this.#key = key;
    this.#payer = payment.authorization.from.toLowerCase();
    this.#bought = { payment: idOf(payment).toLowerCase(), signature: hash('sha256', payment.signature) };
    this.#life = payment.endsAt - now + MARGIN_MS;
  }

  /** What was bought under its key. @throws StateUnavailable */
  async find(): Promise<{ readonly sold: Sold; readonly isSame: boolean } | undefined> {
    const { sold, payment, signature } = (await this.#kept.find(this.#key)) ?? {};
    const { payment: own, signature: ownSignature } = this.#bought;
    return sold && { sold, isSame: payment === own && signature === ownSignature };
  }

  /**
   * Takes a place for the answer. Where none is left, or the payer has had his share, the answer is not kept.
   * @returns `false` where another payment has it, which may be settled yet. @throws StateUnavailable
   */
  async claim(): Promise<boolean> {
    const text = JSON.stringify(this.#bought);
    const other = await this.#kept.claim(this.#key, text, { ttl: this.#life, durable: true });
    if (other === 'full') return true;
    const isThere = other?.value !== undefined;
    this.#isClaimed = isThere || (await this.#kept.takePlace(this.#payer));
    if (!this.#isClaimed) await this.drop();
    return !isThere || other.value === text;
  }

  /** Gives it back: the payment was not taken, and will not be by this request. */
  async drop(): Promise<void> {
    // Where the state is away, it ends with the authorisation.
    await this.#kept.area.compareAndSet(this.#key, JSON.stringify(this.#bought), undefined).catch(() => undefined);
  }

  /** Keeps what was sold. Where that fails, the key is held until its authorisation ends: the payer gets his answer all the same. */
  async keep(answer: SignedResponse, exchange: Exchange): Promise<void> {
    try {
      await this.#keep(answer, exchange);
    } catch (error) {
      const fields = { requestId: exchange.requestId, error: error instanceof Error ? error.message : String(error) };
      this.#kept.log.warn('an answer could not be kept for the identifier of its payment', fields);
    }
  }

  async #keep({ json }: SignedResponse, exchange: Exchange): Promise<void> {
    if (!this.#isClaimed) return;
    const { 'PAYMENT-RESPONSE': settled = '' } = answerHeaders.get(exchange) ?? {};
    const { fingerprint = '' } = this;
    const { area } = this.#kept;
    const sold: Sold = { fingerprint, settled, ...(await this.#keepable(json)) };
    const options = { ttl: KEPT_MS, keepLonger: true, durable: true };
    const text = JSON.stringify({ ...this.#bought, sold });
    const other = await area.compareAndSet(this.#key, JSON.stringify(this.#bought), text, options);
    // Its claim may have ended meanwhile; another payment's claim is not this one's to take.
    if (other !== undefined && other.value === undefined) await area.compareAndSet(this.#key, undefined, text, options);
  }

  async #keepable(json: string): Promise<Pick<Sold, 'answer' | 'unkept'>> {
    if (json.length > LONGEST_ANSWER) return { unkept: TOO_LONG };
    return (await this.#kept.takeBytes(this.#payer, Buffer.byteLength(json))) ? { answer: json } : { unkept: NO_ROOM };
  }
}

export function fingerprintOf({ key }: { readonly key: string }): string {
  return hash('sha256', key);
}

/** Whether it may be given again: answers of a former signer are none of the service. */
function isBy(node: string, answer: string): boolean {
  const { node: signer }: { readonly node: string } = JSON.parse(answer);
  return isSameHex(signer, node);
}

/**
 * What was sold before, for the same request only.
 * @param node whose answers are given.
 * @throws Refusal 409
 */
export function soldAgain(sold: Sold, question: { readonly key: string }, node: string): SignedResponse {
  const { answer, unkept = TOO_LONG, fingerprint } = sold;
  const refuse = (message: string) => new Refusal(409, message);
  if (fingerprint !== fingerprintOf(question)) throw refuse(OTHER_REQUEST);
  if (answer === undefined) throw refuse(unkept);
  if (!isBy(node, answer)) throw refuse(FORMER_SIGNER);
  return SignedResponse.parse(answer);
}
