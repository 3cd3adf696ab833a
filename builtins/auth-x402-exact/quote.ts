import { isDeepStrictEqual } from 'node:util';
import type { PaymentRequirements } from '@x402/core/types';
import { inexactParameters } from '../../plugins-sdk/context-keys.ts';
import {
  type AuthMethod,
  ContextKey,
  type Endpoint,
  type Exchange,
  type Parameters,
  Refusal,
} from '../../plugins-sdk/index.ts';
import { keys } from '../../plugins-sdk/keys.ts';
import { type Offer, requirementsOf } from './offer.ts';
import { Pricing } from './price.ts';
import type { Accept, Terms } from './terms.ts';

/** What one request can be paid with, by the endpoint's methods, and how it is told so. */
export interface Quote {
  readonly offer: Offer;
  readonly accepts: ReadonlyMap<AuthMethod, readonly PaymentRequirements[]>;
  /** Whether it costs nothing. */
  readonly isFree: boolean;
}

const quoted = new ContextKey<Quote>('x402-exact quote');

/** Says what requests to one endpoint cost. */
export class Quotes {
  readonly #terms: ReadonlyMap<AuthMethod, Terms>;
  readonly #offer: Offer;
  readonly #pricings: ReadonlyMap<Accept, Pricing>;
  /** Where it is the same for all. */
  readonly #fixed: Quote | undefined;

  /** @param offer of the endpoint, whatever it costs. */
  constructor(endpoint: Endpoint, terms: ReadonlyMap<AuthMethod, Terms>, offer: Offer) {
    const declared = keys.parameters.of(endpoint) ?? [];
    const accepts = [...terms.values()].flatMap((one) => one.accepts);
    this.#terms = terms;
    this.#offer = offer;
    this.#pricings = new Map(
      accepts.flatMap((accept) => {
        return typeof accept.amount === 'string' ? [] : [[accept, new Pricing(accept.amount, declared)]];
      }),
    );
    this.#fixed = this.#pricings.size === 0 ? this.#quote({}) : undefined;
  }

  /** @throws Refusal 400 for parameters that have no price. */
  of(exchange: Exchange): Quote {
    const known = this.#fixed ?? quoted.get(exchange);
    if (known !== undefined) return known;
    const quote = this.#quote(exchange.parameters, inexactParameters.get(exchange));
    quoted.set(exchange, quote);
    return quote;
  }

  /** @throws Refusal 500 where the parameters that are asked with cost something else than those that were paid for. */
  requireSame(parameters: Parameters, exchange: Exchange): void {
    if (parameters === exchange.parameters || this.#fixed !== undefined) return;
    if (isDeepStrictEqual(this.#quote(parameters).accepts, this.of(exchange).accepts)) return;
    throw new Refusal(500, 'Internal server error', {
      reason: 'a plugin has changed a parameter that the price depends on',
    });
  }

  #quote(parameters: Parameters, inexact?: ReadonlySet<string>): Quote {
    const amountOf = (accept: Accept) =>
      this.#pricings.get(accept)?.priceOf(parameters, inexact) ?? String(accept.amount);
    const accepts = new Map([...this.#terms].map(([method, terms]) => [method, requirementsOf(terms, amountOf)]));
    const all = [...accepts.values()].flat();
    return { offer: this.#offer.asking(all), accepts, isFree: all.some(({ amount }) => amount === '0') };
  }
}
