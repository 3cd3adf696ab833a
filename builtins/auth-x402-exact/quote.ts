import { isDeepStrictEqual } from 'node:util';
import type { PaymentRequirements } from '@x402/core/types';
import { keys } from '../../plugins-sdk/config.ts';
import {
  type AuthMethod,
  ContextKey,
  type Endpoint,
  type Exchange,
  type Parameters,
  Refusal,
  type Services,
} from '../../plugins-sdk/index.ts';
import { type Offer, requirementsOf } from './offer.ts';
import { completed, pricedBy } from './plugin-price.ts';
import type { Accept, Terms } from './terms.ts';

type Prices = Services['prices'];

/** What one request can be paid with, by the endpoint's methods, and how it is told so. */
export interface Quote {
  readonly offer: Offer;
  readonly accepts: ReadonlyMap<AuthMethod, readonly PaymentRequirements[]>;
  /** Whether it costs nothing. */
  readonly isFree: boolean;
}

const quoted = new ContextKey<Quote>('x402-exact quote');

type PriceOf = (parameters: Parameters, exchange: Exchange) => Promise<string>;

/** How a request is priced, where that depends on the request. */
function pricingOf({ amount }: Accept, endpoint: Endpoint, prices: Prices): PriceOf | undefined {
  if (typeof amount === 'string') return undefined;
  const declared = keys.parameters.of(endpoint) ?? [];
  return (parameters, exchange) => pricedBy(amount, prices, completed(declared, parameters), exchange);
}

/** Says what requests to one endpoint cost. */
export class Quotes {
  readonly #terms: ReadonlyMap<AuthMethod, Terms>;
  readonly #offer: Offer;
  readonly #pricings: ReadonlyMap<Accept, PriceOf>;
  /** Where it is the same for all. */
  readonly #fixed: Quote | undefined;

  /** @param offer of the endpoint, whatever it costs. */
  constructor(endpoint: Endpoint, terms: ReadonlyMap<AuthMethod, Terms>, offer: Offer, prices: Prices) {
    const accepts = [...terms.values()].flatMap((one) => one.accepts);
    this.#terms = terms;
    this.#offer = offer;
    this.#pricings = new Map(
      accepts.flatMap((accept) => {
        const pricing = pricingOf(accept, endpoint, prices);
        return pricing === undefined ? [] : [[accept, pricing]];
      }),
    );
    this.#fixed = this.#pricings.size === 0 ? this.#asking(new Map()) : undefined;
  }

  /** @throws Refusal 503 where its plugin does not say it. */
  async of(exchange: Exchange): Promise<Quote> {
    const known = this.#fixed ?? quoted.get(exchange);
    if (known !== undefined) return known;
    const quote = await this.#quote(exchange.parameters, exchange);
    quoted.set(exchange, quote);
    return quote;
  }

  /** @throws Refusal 500 where the parameters that are asked with cost something else than those that were paid for. */
  async requireSame(parameters: Parameters, exchange: Exchange): Promise<void> {
    if (parameters === exchange.parameters || this.#fixed !== undefined) return;
    const [paid, asked] = [await this.of(exchange), await this.#quote(parameters, exchange)];
    if (isDeepStrictEqual(asked.accepts, paid.accepts)) return;
    throw new Refusal(500, 'Internal server error', {
      reason: 'a plugin has changed a parameter that the price depends on',
    });
  }

  async #quote(parameters: Parameters, exchange: Exchange): Promise<Quote> {
    const amounts = new Map<Accept, string>();
    for (const [accept, priceOf] of this.#pricings) amounts.set(accept, await priceOf(parameters, exchange));
    return this.#asking(amounts);
  }

  #asking(amounts: ReadonlyMap<Accept, string>): Quote {
    const amountOf = (accept: Accept) => amounts.get(accept) ?? String(accept.amount);
    const accepts = new Map([...this.#terms].map(([method, terms]) => [method, requirementsOf(terms, amountOf)]));
    const all = [...accepts.values()].flat();
    return { offer: this.#offer.asking(all), accepts, isFree: all.some(({ amount }) => amount === '0') };
  }
}
