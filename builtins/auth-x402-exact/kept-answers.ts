/**
 * Keeps answers that were bought under payment identifiers, which payers choose: one record for each identifier. A repeated
 * request gets the first answer again, and nothing is paid twice.
 */
import { hash } from 'node:crypto';
import { isSameHex } from '../../lib/eth/hex.ts';
import { isRecord, jsonIn } from '../../lib/json/value.ts';
import { errorText } from '../../lib/text.ts';
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
import { takeRoom } from '../shared/room.ts';
import { PAYMENT_IDENTIFIER } from './offer.ts';
import { type Authorised, authorisedIn, idOf, type Sent } from './payload.ts';
import { TYPE } from './terms.ts';

/** What a settled payment has bought. */
export interface Sold {
  /** The question's key. */
  readonly questionKey: string;
  /** The answer's JSON; absent if it was not kept. */
  readonly answer?: string;
  /** Why the answer was not kept. */
  readonly unkept?: string;
  /** The header `PAYMENT-RESPONSE` of the settlement. */
  readonly settled: string;
}

/** Milliseconds for which an answer is kept. */
const KEPT_MS = 3_600_000;
/** Characters of the longest answer that is kept. */
const LONGEST_ANSWER = 32_768;
const MIB = 1024 * 1024;
/** Most bytes of answers that can be added at once, for one payer and for all. */
const PAYER_LIMIT = { max: 4 * MIB, window: KEPT_MS };
const LIMIT = { max: 32 * MIB, window: KEPT_MS };

/** Errors of the 409: the identifier belongs to another request, or its answer cannot be given again. */
export const OTHER_REQUEST = 'Payment identifier was used for another request';
export const TOO_LONG = 'The answer is too long to be given again';
export const NO_ROOM = 'The answer was not kept: too much was sold within an hour';
export const FORMER_SIGNER = 'The answer is of a former signer and is not given again';

const ID = /^[A-Za-z0-9_-]{16,128}$/;
const memory = new StateKey<MemoryArea>('x402-exact identifiers', { lasting: true });

/** Makes the function that finds a payment's identifier, if its client gave one. It throws Refusal 400 for an invalid one. */
export function identifiersOf(services: Services) {
  const { now, log } = services;
  const area = areaIn(services, `${TYPE} identifiers`, memory);
  return (sent: Sent): Entry | undefined => {
    const id = memberAt(sent.extensions, PAYMENT_IDENTIFIER, 'info', 'id');
    const authorised = authorisedIn(sent);
    if (id === undefined || authorised === undefined) return undefined;
    if (typeof id !== 'string' || !ID.test(id)) throw new Refusal(400, 'Invalid payment identifier');
    return entryIn(area, log, authorised, id, now());
  };
}

/** One payment's use of an identifier. */
export type Entry = ReturnType<typeof entryIn>;

/** @param id of one payer on one network: it never finds what somebody else has paid for. @param now epoch milliseconds. */
function entryIn(area: StateArea, log: Log, payment: Authorised, id: string, now: number) {
  const { from, validBefore } = payment.authorization;
  const payer = from.toLowerCase();
  const key = hash('sha256', [payment.requirements.network, payer, id].join(' '));
  // The record until an answer is sold. A client that sends the same authorisation and signature is the one that has paid.
  const claim = { payment: idOf(payment).toLowerCase(), signature: hash('sha256', payment.signature) };
  const own = JSON.stringify(claim);
  // At least as long as an answer is kept: whether this payment was settled may stay unknown even after its end. A claim
  // by another payment could then pay a second time for the same answer.
  const life = Math.max(lifeUntil(Number(validBefore) * 1000, now), KEPT_MS);
  return {
    /** Finds what was bought under the identifier, and whether this very payment bought it. @throws StateUnavailable */
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
     * Claims the identifier.
     * @returns `false` if another payment has it, which may still be settled. @throws StateUnavailable
     */
    claim: async (): Promise<boolean> =>
      (await update(area, key, (text) => text ?? own, { ttl: life, durable: true })) === own,
    /** Frees the identifier: the payment was not taken, and this request will not take it. */
    drop: async (): Promise<void> => {
      // If the state is unreachable, the claim ends with its TTL.
      await update(area, key, (text) => (text === own ? undefined : text)).catch(() => undefined);
    },
    /** Keeps the answer. If that fails, the payer still gets it, and the claim stays until its TTL ends. */
    keep: async ({ json }: SignedResponse, questionKey: string, exchange: Exchange): Promise<void> => {
      const { 'PAYMENT-RESPONSE': settled = '' } = answerHeaders.get(exchange) ?? {};
      try {
        const sold: Sold = { questionKey, settled, ...(await keepable(area, payer, json)) };
        const record = JSON.stringify({ ...claim, sold });
        // The claim may have expired meanwhile. A claim of another payment is not replaced.
        const kept = (text: string | undefined) => (text === undefined || text === own ? record : text);
        await update(area, key, kept, { ttl: KEPT_MS, durable: true });
      } catch (error) {
        const fields = { requestId: exchange.requestId, error: errorText(error) };
        log.warn('an answer could not be kept for the identifier of its payment', fields);
      }
    },
  };
}

/** Returns the answer if it fits the payer's share and that of all, else why it is not kept. @throws StateUnavailable */
async function keepable(area: StateArea, payer: string, json: string): Promise<Pick<Sold, 'answer' | 'unkept'>> {
  if (json.length > LONGEST_ANSWER) return { unkept: TOO_LONG };
  const bytes = Buffer.byteLength(json);
  const limits = { [`bytes of ${payer}`]: PAYER_LIMIT, bytes: LIMIT };
  return (await takeRoom(area, limits, bytes)) ? { answer: json } : { unkept: NO_ROOM };
}

/**
 * Returns the answer that was sold before, if the request is the same.
 * @param node the signer in use: answers of a former signer are not given again.
 * @throws Refusal 409
 */
export function soldAgain(sold: Sold, question: { readonly key: string }, node: string): SignedResponse {
  const { answer, unkept = TOO_LONG, questionKey } = sold;
  const refuse = (message: string) => new Refusal(409, message);
  if (questionKey !== question.key) throw refuse(OTHER_REQUEST);
  if (answer === undefined) throw refuse(unkept);
  if (!isSameHex(JSON.parse(answer).node, node)) throw refuse(FORMER_SIGNER);
  return SignedResponse.parse(answer);
}
