/**
 * What payers have bought by identifiers of their own: one record for each, so that a request that is sent again gets the answer of
 * the first one, and nothing is paid twice.
 */
import { hash } from 'node:crypto';
import { isSameHex } from '../../lib/eth/hex.ts';
import { isRecord, jsonIn } from '../../lib/json/value.ts';
import {
  answerHeaders,
  type Exchange,
  type Log,
  Refusal,
  type Services,
  SignedResponse,
} from '../../plugins-sdk/index.ts';
import { type MemoryArea, type StateArea, StateKey, StateUnreadable, update } from '../../plugins-sdk/state.ts';
import { memberAt } from '../shared/described.ts';
import { lifeUntil } from '../shared/payment-mark.ts';
import { areaIn } from '../shared/payments.ts';
import { PAYMENT_IDENTIFIER } from './offer.ts';
import { idOf, type Payment } from './payload.ts';
import { TYPE } from './terms.ts';

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
const KEPT_MS = 3_600_000;
/** Characters of an answer that is kept. */
const LONGEST_ANSWER = 32_768;
const MIB = 1024 * 1024;
/**
 * Bytes of answers that a payer, and all, may add at once. As many flow in again within the time that answers are kept, so that twice
 * as many are kept at most.
 */
const PAYER_LIMIT = { max: 4 * MIB, window: KEPT_MS };
const LIMIT = { max: 32 * MIB, window: KEPT_MS };

/** What clients are told of answers that are not there, or of what cannot be bought. */
export const OTHER_REQUEST = 'Payment identifier was used for another request';
export const TOO_LONG = 'The answer is too long to be given again';
export const NO_ROOM = 'The answer was not kept: too much was sold within an hour';
export const FORMER_SIGNER = 'The answer is of a former signer and is not given again';

const ID = /^[A-Za-z0-9_-]{16,128}$/;
const memory = new StateKey<MemoryArea>('x402-exact identifiers', { lasting: true });

/** @returns what finds the use of an identifier in a payment, where its client has given it one. It throws Refusal 400. */
export function identifiersOf(services: Services) {
  const { now, log } = services;
  const area = areaIn(services, `${TYPE} identifiers`, memory);
  return (payment: Payment): Entry | undefined => {
    const id = memberAt(payment.extensions, PAYMENT_IDENTIFIER, 'info', 'id');
    if (id === undefined) return undefined;
    if (typeof id !== 'string' || !ID.test(id)) throw new Refusal(400, 'Invalid payment identifier');
    return entryIn(area, log, payment, id, now());
  };
}

/** One payment's use of an identifier, until it is certain what became of the payment. */
export type Entry = ReturnType<typeof entryIn>;

/** @param id one payer's on one network: nobody gets by it what another one has paid. @param now epoch milliseconds. */
function entryIn(area: StateArea, log: Log, payment: Payment, id: string, now: number) {
  const payer = payment.authorization.from.toLowerCase();
  const key = hash('sha256', [payment.requirements.network, payer, id].join(' '));
  // The record while nothing is sold: the authorisation, and the hash of its signature. Who has both is who has paid.
  const claim = { payment: idOf(payment).toLowerCase(), signature: hash('sha256', payment.signature) };
  const own = JSON.stringify(claim);
  // Whether it was settled may stay unknown after its end: another payment would pay twice for what an answer is given again.
  const life = Math.max(lifeUntil(payment.endsAt, now), KEPT_MS);
  return {
    /** What was bought by the identifier, and whether by this very payment. @throws StateUnavailable */
    find: async (): Promise<{ readonly sold: Sold; readonly isSame: boolean } | undefined> => {
      const text = await area.get(key);
      if (text === undefined) return undefined;
      const record = jsonIn(text);
      if (!isRecord(record)) throw new StateUnreadable(`x402-exact identifiers ${key}`);
      const { sold, ...claimed } = record;
      if (!isRecord(sold)) return undefined;
      return { sold: sold as unknown as Sold, isSame: JSON.stringify(claimed) === own };
    },
    /**
     * Takes the identifier.
     * @returns `false` where another payment has it, which may be settled yet. @throws StateUnavailable
     */
    claim: async (): Promise<boolean> =>
      (await update(area, key, (text) => text ?? own, { ttl: life, durable: true })) === own,
    /** Gives it back: the payment was not taken, and will not be by this request. */
    drop: async (): Promise<void> => {
      // Where the state is away, it ends with its time.
      await update(area, key, (text) => (text === own ? undefined : text)).catch(() => undefined);
    },
    /** Keeps what was sold. Where that fails, the claim stays for its time: the payer gets his answer all the same. */
    keep: async ({ json }: SignedResponse, fingerprint: string, exchange: Exchange): Promise<void> => {
      const { 'PAYMENT-RESPONSE': settled = '' } = answerHeaders.get(exchange) ?? {};
      try {
        const sold: Sold = { fingerprint, settled, ...(await keepable(area, payer, json)) };
        const record = JSON.stringify({ ...claim, sold });
        // The claim may have ended meanwhile; another payment's is not this one's to take.
        const kept = (text: string | undefined) => (text === undefined || text === own ? record : text);
        await update(area, key, kept, { ttl: KEPT_MS, durable: true });
      } catch (error) {
        const fields = { requestId: exchange.requestId, error: error instanceof Error ? error.message : String(error) };
        log.warn('an answer could not be kept for the identifier of its payment', fields);
      }
    },
  };
}

/** An answer for which the payer has room left of his share, and of what is there for all. @throws StateUnavailable */
async function keepable(area: StateArea, payer: string, json: string): Promise<Pick<Sold, 'answer' | 'unkept'>> {
  if (json.length > LONGEST_ANSWER) return { unkept: TOO_LONG };
  const bytes = Buffer.byteLength(json);
  const take = (n: number) =>
    Promise.all([area.takeTokens(`bytes of ${payer}`, PAYER_LIMIT, n), area.takeTokens('bytes', LIMIT, n)]);
  // Looks first: what finds no room costs nothing.
  const hasRoom = (await take(0)).every(({ left }) => left >= bytes);
  const isRoom = hasRoom && (await take(bytes)).every(({ granted }) => granted === bytes);
  return isRoom ? { answer: json } : { unkept: NO_ROOM };
}

export function fingerprintOf({ key }: { readonly key: string }): string {
  return hash('sha256', key);
}

/**
 * What was sold before, for the same request only.
 * @param node whose answers are given: those of a former signer are none of the service.
 * @throws Refusal 409
 */
export function soldAgain(sold: Sold, question: { readonly key: string }, node: string): SignedResponse {
  const { answer, unkept = TOO_LONG, fingerprint } = sold;
  const refuse = (message: string) => new Refusal(409, message);
  if (fingerprint !== fingerprintOf(question)) throw refuse(OTHER_REQUEST);
  if (answer === undefined) throw refuse(unkept);
  if (!isSameHex(JSON.parse(answer).node, node)) throw refuse(FORMER_SIGNER);
  return SignedResponse.parse(answer);
}
