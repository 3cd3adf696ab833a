import { hash } from 'node:crypto';
import { canonicalJson } from '../../lib/json/canonical-json.ts';
import { type Exchange, Refusal, type StateArea } from '../../plugins-sdk/index.ts';
import { refusalOf } from '../shared/payments.ts';
import { Entry, isBy, type KeptAnswers, type Repeat } from './kept-answers.ts';
import type { Offer } from './offer.ts';
import { type Payment, PaymentFault } from './payload.ts';
import { readSignIn, type SignedIn, type SignInTerms } from './sign-in.ts';

/** What clients are told who have signed in. */
const NOT_BOUGHT = 'This wallet has bought no answer to this request within an hour';
export const NOT_YET = 'The answer is not there yet, try again';

export interface SignInsOptions {
  readonly kept: KeptAnswers;
  /** Challenges that were used. */
  readonly used: StateArea;
  /** Epoch milliseconds. */
  now(): number;
  /** The signer's address. */
  readonly node: string;
}

type Asked = Pick<Exchange, 'endpoint' | 'parameters'>;

/** Under which a payer finds what he has bought; nothing for parameters that have no one text, which no endpoint takes. */
function keyOf(payer: string, { endpoint, parameters }: Asked): string | undefined {
  try {
    return hash('sha256', ['sign-in', payer.toLowerCase(), endpoint.id, canonicalJson(parameters)].join(' '));
  } catch {
    return undefined;
  }
}

/** Lets payers read again what they have bought, by a signature of the paying wallet. */
export class SignIns {
  readonly #options: SignInsOptions;

  constructor(options: SignInsOptions) {
    this.#options = options;
  }

  /** Where a purchase is kept for its payer. */
  entryFor(payment: Payment, asked: Asked): Entry | undefined {
    const key = keyOf(payment.authorization.from, asked);
    const { kept, now } = this.#options;
    return key === undefined ? undefined : new Entry(kept, payment, key, now(), true);
  }

  /**
   * What a request gives again that was bought before.
   * @param header as the client sent it. @throws Refusal 402, 409 where it is not there yet, 401 where nobody can tell.
   */
  async find(header: string, terms: SignInTerms, exchange: Exchange, offer: Offer): Promise<Repeat> {
    try {
      const signed = readSignIn(header, terms, this.#options.now());
      if (!(await this.#use(signed))) throw new PaymentFault('invalid_siwx_nonce');
      const key = keyOf(signed.address, exchange);
      const bought = key && (await this.#options.kept.find(key));
      const refuse = () => offer.refusal(NOT_BOUGHT);
      if (!bought) throw refuse();
      const { sold } = bought;
      if (sold === undefined) throw new Refusal(409, NOT_YET, { headers: { 'Retry-After': '1' } });
      if (sold.answer === undefined || !isBy(this.#options.node, sold.answer)) throw refuse();
      return { sold, refuse };
    } catch (error) {
      throw error instanceof PaymentFault ? offer.refusal(error.message) : refusalOf(error);
    }
  }

  /** @returns `false` where the challenge was used before. Somebody else's signature uses it up for nobody but him. */
  async #use({ address, nonce, life }: SignedIn): Promise<boolean> {
    const key = hash('sha256', `${address} ${nonce}`);
    return (await this.#options.used.compareAndSet(key, undefined, 'used', { ttl: life })) === undefined;
  }
}
