/** What a request costs: what the config says, or a plugin by the parameters of the request. */
import type { PaymentRequirements } from '@x402/core/types';
import { hint } from '../../lib/text/suggest.ts';
import { keys, type Parameter } from '../../plugins-sdk/config.ts';
import {
  type AuthMethod,
  type Endpoint,
  type Exchange,
  isRefusal,
  type Parameters,
  Refusal,
  type Services,
} from '../../plugins-sdk/index.ts';
import { isLeftOut } from '../shared/parameter-value.ts';
import type { Facilitators } from './facilitators.ts';
import { type Offer, requirementsOf } from './offer.ts';
import { type Accept, acceptsOf } from './terms.ts';

type Prices = Services['prices'];
type PluginPrice = Extract<Accept['amount'], { readonly by: string }>;

/** One way to pay, and who verifies and settles it. */
export interface Way {
  readonly requirements: PaymentRequirements;
  readonly facilitators: Facilitators;
}

/** What one request can be paid with, and how it is told so. */
export interface Quote {
  readonly offer: Offer;
  readonly ways: readonly Way[];
  /** Whether it costs nothing. */
  readonly isFree: boolean;
}

/** Says what requests cost. @throws Refusal 503 where a plugin does not say it. */
export type Quoting = (parameters: Parameters, exchange: Exchange) => Promise<Quote>;

/** @param offer of the endpoint, whatever it costs. */
export function quoting(
  endpoint: Endpoint,
  offer: Offer,
  prices: Prices,
  facilitatorsOf: (method: AuthMethod) => Facilitators,
): Quoting {
  const declared = keys.parameters.of(endpoint) ?? [];
  const sold = acceptsOf(endpoint);
  return async (parameters, exchange) => {
    const ways: Way[] = [];
    for (const { method, accept } of sold) {
      const { amount } = accept;
      const isFixed = typeof amount === 'string';
      const price = isFixed ? amount : await pricedBy(amount, prices, completed(declared, parameters), exchange);
      ways.push({ requirements: requirementsOf(accept, price), facilitators: facilitatorsOf(method) });
    }
    const accepts = ways.map(({ requirements }) => requirements);
    return { offer: { ...offer, accepts }, ways, isFree: accepts.some(({ amount }) => amount === '0') };
  };
}

/** What a client hears where a request has no price: it gets no answer for nothing. */
export function noPrice(plugin: string, reason?: string): Refusal {
  return new Refusal(503, `Plugin "${plugin}" gave no price`, { reason });
}

/** What a request gives, with defaults in place of what it leaves out: a price by other values would be that of another answer. */
function completed(declared: readonly Parameter[], given: Parameters): Parameters {
  const fixed = new Set(declared.flatMap((one) => (one.fixed === undefined ? [] : [one.name])));
  const fallbacks = declared.flatMap((one) => {
    const { name, secret, default: fallback } = one;
    return fallback !== undefined && !secret && isLeftOut(one, given) ? [[name, fallback] as const] : [];
  });
  return Object.fromEntries([...Object.entries(given).filter(([name]) => !fixed.has(name)), ...fallbacks]);
}

/** @throws Refusal 503 that names the plugin, unless the plugin itself refuses the request. */
async function pricedBy(
  { by, max }: PluginPrice,
  prices: Prices,
  parameters: Parameters,
  exchange: Exchange,
): Promise<string> {
  const plugin = prices.providers().get(by);
  const none = (reason: string) => noPrice(String(plugin), reason);
  let price: bigint | undefined;
  try {
    price = await prices.priceOf(by, parameters, exchange);
  } catch (error) {
    throw isRefusal(error) && error.fault ? none(error.reason ?? error.message) : error;
  }
  if (price === undefined) throw none(`plugin "${plugin}": it returned no price`);
  if (price > BigInt(max)) throw none(`plugin "${plugin}": its price is above the maximum`);
  return String(price);
}

/** Of all that is sold, every price has a plugin. @throws Error */
export function requireProviders(endpoints: readonly Endpoint[], prices: Prices): void {
  const known = [...prices.providers().keys()];
  for (const { accept } of endpoints.flatMap(acceptsOf)) {
    const { amount } = accept;
    if (typeof amount === 'string' || known.includes(amount.by)) continue;
    throw new Error(
      `no plugin has the price "${amount.by}" of auth.accepts[].amount.by${hint(amount.by, known, 'prices')}`,
    );
  }
}
