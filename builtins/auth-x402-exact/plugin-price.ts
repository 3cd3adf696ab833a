import { hint } from '../../lib/text/suggest.ts';
import type { Parameter } from '../../plugins-sdk/config.ts';
import { type Exchange, isRefusal, type Parameters, Refusal, type Services } from '../../plugins-sdk/index.ts';
import { isLeftOut } from '../shared/parameter-value.ts';
import type { Accept, Terms } from './terms.ts';

type Prices = Services['prices'];
type PluginPrice = Extract<Accept['amount'], { readonly by: string }>;

/** What a client hears where a request has no price: it gets no answer for nothing. */
export function noPrice(plugin: string, reason?: string): Refusal {
  return new Refusal(503, `Plugin "${plugin}" gave no price`, { reason });
}

/** What a request gives, with defaults in place of what it leaves out: a price by other values would be that of another answer. */
export function completed(declared: readonly Parameter[], given: Parameters): Parameters {
  const fixed = new Set(declared.flatMap((one) => (one.fixed === undefined ? [] : [one.name])));
  const fallbacks = declared.flatMap((one) => {
    const { name, secret, default: fallback } = one;
    return fallback !== undefined && !secret && isLeftOut(one, given) ? [[name, fallback] as const] : [];
  });
  return Object.fromEntries([...Object.entries(given).filter(([name]) => !fixed.has(name)), ...fallbacks]);
}

/** What a plugin says that a request costs. @throws Refusal 503 that names the plugin, unless the plugin itself refuses the request. */
export async function pricedBy(
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
export function requireProviders(all: readonly Terms[], prices: Prices): void {
  const known = [...prices.providers().keys()];
  for (const { amount } of all.flatMap(({ accepts }) => accepts)) {
    if (typeof amount === 'string' || known.includes(amount.by)) continue;
    throw new Error(
      `no plugin has the price "${amount.by}" of auth.accepts[].amount.by${hint(amount.by, known, 'prices')}`,
    );
  }
}
