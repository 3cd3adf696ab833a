import { hash } from 'node:crypto';
import { answerHeaders } from '../../plugins-sdk/context-keys.ts';
import {
  type Exchange,
  type Log,
  Refusal,
  SignedResponse,
  type StateArea,
  StateUnavailable,
} from '../../plugins-sdk/index.ts';
import { memberAt } from '../shared/described.ts';
import type { Payment } from './payload.ts';

/** The extension as the public library declares it. */
export const identifierExtension = {
  info: { required: false },
  schema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      required: { type: 'boolean' },
      id: { type: 'string', minLength: 16, maxLength: 128, pattern: '^[a-zA-Z0-9_-]+$' },
    },
    required: ['required'],
  },
};
export const PAYMENT_IDENTIFIER = 'payment-identifier';

const ID = /^[A-Za-z0-9_-]{16,128}$/;

/** What stands under the identifier of a payer, from the moment his payment was found good. */
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
  /** JSON; absent where it is too long to be kept. */
  readonly answer?: string;
  /** `PAYMENT-RESPONSE` */
  readonly settled: string;
}

/** Milliseconds for which an answer is given again. */
const KEPT_MS = 3_600_000;
/** Milliseconds after the end of an authorisation in which it may be settled yet: clocks differ. */
const MARGIN_MS = 60_000;
/** Characters of an answer that is kept. */
const LONGEST = 32_768;

/** The identifier that a client has given its payment. @throws Refusal 400 */
export function identifierIn({ extensions }: Payment): string | undefined {
  const id = memberAt(extensions, PAYMENT_IDENTIFIER, 'info', 'id');
  if (id === undefined) return undefined;
  if (typeof id === 'string' && ID.test(id)) return id;
  throw new Refusal(400, 'Invalid payment identifier');
}

export function fingerprintOf({ key }: { readonly key: string }): string {
  return hash('sha256', key);
}

/** One payment's identifier, until it is certain what became of the payment. */
export class Identified {
  readonly #area: StateArea;
  readonly #log: Log;
  readonly #key: string;
  readonly #bought: Bought;
  readonly #life: number;
  /** Of what is asked. */
  fingerprint: string | undefined;

  constructor(area: StateArea, log: Log, payment: Payment, id: string, now: number) {
    const { requirements, authorization, signature } = payment;
    const { from, nonce } = authorization;
    const { network, asset } = requirements;
    this.#area = area;
    this.#log = log;
    // An identifier is one payer's: nobody gets by it what another one has paid.
    this.#key = hash('sha256', [network, from.toLowerCase(), id].join(' '));
    const paid = [network, asset, from, nonce].join(' ').toLowerCase();
    this.#bought = { payment: paid, signature: hash('sha256', signature) };
    this.#life = payment.endsAt - now + MARGIN_MS;
  }

  /** What was bought by it. @throws StateUnavailable */
  async find(): Promise<{ readonly sold: Sold; readonly isSame: boolean } | undefined> {
    const text = await this.#area.get(this.#key);
    if (text === undefined) return undefined;
    const { sold, ...rest }: Bought = JSON.parse(text);
    return sold && { sold, isSame: JSON.stringify(rest) === JSON.stringify(this.#bought) };
  }

  /** @returns `false` where another payment has it, which may be settled yet. @throws StateUnavailable */
  async claim(): Promise<boolean> {
    const text = JSON.stringify(this.#bought);
    const options = { ttl: this.#life, durable: true };
    const other = await this.#area.compareAndSet(this.#key, undefined, text, options);
    return other === undefined || other.value === text;
  }

  /** Gives it back: the payment was not taken, and will not be by this request. */
  async drop(): Promise<void> {
    // Where the state is away, it ends with the authorisation.
    await this.#area.compareAndSet(this.#key, JSON.stringify(this.#bought), undefined).catch(() => undefined);
  }

  /** Keeps what was sold. Where that fails, the identifier is held until its authorisation ends. */
  async keep({ json }: SignedResponse, exchange: Exchange): Promise<void> {
    const { 'PAYMENT-RESPONSE': settled = '' } = answerHeaders.get(exchange) ?? {};
    const { fingerprint = '' } = this;
    const sold: Sold = { fingerprint, settled, ...(json.length <= LONGEST && { answer: json }) };
    const options = { ttl: KEPT_MS, keepLonger: true, durable: true };
    try {
      const text = JSON.stringify({ ...this.#bought, sold });
      const other = await this.#area.compareAndSet(this.#key, JSON.stringify(this.#bought), text, options);
      // What it was claimed by may have ended meanwhile.
      if (other !== undefined && other.value === undefined)
        await this.#area.compareAndSet(this.#key, undefined, text, options);
    } catch (error) {
      if (!(error instanceof StateUnavailable)) throw error;
      const fields = { requestId: exchange.requestId, error: error.message };
      this.#log.warn('an answer could not be kept for the identifier of its payment', fields);
    }
  }
}

/** What was sold before, for the same request only. @throws Refusal 409 */
export function soldAgain({ answer, fingerprint }: Sold, question: { readonly key: string }): SignedResponse {
  const refuse = (message: string) => new Refusal(409, message, { failure: false });
  if (fingerprint !== fingerprintOf(question)) throw refuse('Payment identifier was used for another request');
  if (answer === undefined) throw refuse('The answer is too long to be given again');
  return SignedResponse.parse(answer);
}
