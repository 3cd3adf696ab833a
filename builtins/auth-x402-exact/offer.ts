/** The price of a request, by the config or a plugin, and the 402 that states it: `PaymentRequired` of x402, version 2. */
import type { PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { hint } from '../../lib/suggest.ts';
import { keys, type Parameter } from '../../plugins-sdk/config.ts';
import {
  type AuthMethod,
  type Endpoint,
  type Exchange,
  isRefusal,
  type Parameters,
  perEndpoint,
  Refusal,
  type Services,
} from '../../plugins-sdk/index.ts';
import { CATALOGUE_TEXT, detailsOf, discoveryKey, isSold, publicUrlOf, tagsKey } from '../shared/discovery.ts';
import { isLeftOut } from '../shared/parameter-value.ts';
import { bazaarOf } from './bazaar.ts';
import { type Accept, acceptsOf, boundsOf } from './terms.ts';

type PluginPrice = Extract<Accept['amount'], { readonly by: string }>;

export type Offer = PaymentRequired;

/** One way to pay, and the method whose facilitators verify and settle it. */
export interface Way {
  readonly requirements: PaymentRequirements;
  readonly method: AuthMethod;
}

/** The ways to pay for one request, and the offer that lists them. */
export interface Quote {
  readonly offer: Offer;
  readonly ways: readonly Way[];
}

/** Prices a request. @throws Refusal 503 if a plugin gives no price. */
export type Quoting = (parameters: Parameters, exchange: Exchange) => Promise<Quote>;

export function quotingOf({ endpoints, config, describe, prices }: Services): Quoting {
  const document = discoveryKey.in(config) === false ? undefined : describe().document;
  const soldAt = perEndpoint(endpoints.filter(isSold), (endpoint) => ({
    offer: offerOf(endpoint, config, document && bazaarOf(document, endpoint)),
    declared: keys.parameters.of(endpoint) ?? [],
    all: acceptsOf(endpoint),
  }));
  /** @throws Refusal 503 that names the plugin, unless the plugin itself refuses the request. */
  const pricedBy = async ({ by, max }: PluginPrice, parameters: Parameters, exchange: Exchange): Promise<string> => {
    const plugin = String(prices.providers().get(by));
    const refused = (why: string) => noPrice(plugin, `plugin "${plugin}": ${why}`);
    const asked = async () => prices.priceOf(by, parameters, exchange);
    const price = await asked().catch((error: unknown) => {
      if (!isRefusal(error) || !error.fault) throw error;
      throw noPrice(plugin, error.reason ?? error.message);
    });
    if (price === undefined) throw refused('it returned no price');
    if (price > BigInt(max)) throw refused('its price is above the maximum');
    return String(price);
  };
  return async (parameters, exchange) => {
    const { offer, declared, all } = soldAt(exchange.endpoint);
    const ways: Way[] = [];
    for (const { method, accept } of all) {
      const { amount } = accept;
      const isFixed = typeof amount === 'string';
      const price = isFixed ? amount : await pricedBy(amount, completed(declared, parameters), exchange);
      ways.push({ requirements: requirementsOf(accept, price), method });
    }
    return { offer: { ...offer, accepts: ways.map(({ requirements }) => requirements) }, ways };
  };
}

/** Makes the 503 for a request whose plugin gives no price: it gets no answer for free. */
export function noPrice(plugin: string, reason?: string): Refusal {
  return new Refusal(503, `Plugin "${plugin}" gave no price`, { reason });
}

/** Adds defaults, and leaves out fixed and secret parameters: the price must be for the same values as the answer. */
function completed(declared: readonly Parameter[], given: Parameters): Parameters {
  const all = new Map(Object.entries(given));
  for (const one of declared) {
    const { name, secret, fixed, default: fallback } = one;
    if (fixed !== undefined || secret) all.delete(name);
    else if (fallback !== undefined && isLeftOut(one, given)) all.set(name, fallback);
  }
  return Object.fromEntries(all);
}

/** Checks that a plugin has every price that the config names. @throws Error */
export function requireProviders(endpoints: readonly Endpoint[], prices: Services['prices']): void {
  const known = [...prices.providers().keys()];
  for (const { amount } of endpoints.flatMap(acceptsOf).map(({ accept }) => accept)) {
    if (typeof amount === 'string' || known.includes(amount.by)) continue;
    throw new Error(
      `no plugin has the price "${amount.by}" of auth.accepts[].amount.by${hint(amount.by, known, 'prices')}`,
    );
  }
}

export const PAYMENT_IDENTIFIER = 'payment-identifier';
const identifier = { type: 'string', minLength: 16, maxLength: 128, pattern: '^[a-zA-Z0-9_-]+$' };
/** The extension `payment-identifier`, as the public library declares it. */
const identifierExtension = {
  info: { required: false },
  schema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: { required: { type: 'boolean' }, id: identifier },
    required: ['required'],
  },
};

const CATALOGUE_NAME = new RegExp(CATALOGUE_TEXT);

/** Most characters of the header `PAYMENT-REQUIRED`: by default nginx accepts 4 KB of response headers (`proxy_buffer_size`). */
export const LONGEST_REQUIRED = 3200;

/**
 * Makes an endpoint's offer, at its highest price.
 * @param bazaar the entry for catalogues, which is left out if no public URL is configured.
 */
export function offerOf(endpoint: Endpoint, config: Readonly<Record<string, unknown>>, bazaar?: object): Offer {
  const { id, api, name, block, mode } = endpoint;
  const { title: serviceName = '' } = detailsOf(config).info;
  const tags = tagsKey.of(endpoint);
  // From the config: the service does not know its public URL, and the Host header is the client's choice.
  const base = publicUrlOf(endpoint, config);
  return {
    x402Version: 2,
    error: '',
    resource: {
      url: `${base}/endpoints/${id}`,
      description: typeof block.description === 'string' ? block.description : `${api}/${name}`,
      mimeType: mode === 'stream' ? 'text/event-stream' : 'application/json',
      ...(CATALOGUE_NAME.test(serviceName) && { serviceName }),
      ...(tags && { tags: [...tags] }),
    },
    accepts: acceptsOf(endpoint).map(({ accept }) => requirementsOf(accept)),
    extensions: { ...(base !== '' && bazaar && { bazaar }), [PAYMENT_IDENTIFIER]: identifierExtension },
  };
}

/** Makes the protocol's description of one way to pay. @param amount default: the highest price. */
export function requirementsOf(accept: Accept, amount = boundsOf(accept.amount).max): PaymentRequirements {
  const { asset, payTo, extra, maxTimeoutSeconds = 300 } = accept;
  const network = accept.network as PaymentRequirements['network'];
  return { scheme: 'exact', network, asset, amount, payTo, maxTimeoutSeconds, extra };
}

/** Encodes a value as the protocol's headers carry it: JSON in base64. */
export function encodedHeader(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64');
}

/** Makes the header `PAYMENT-REQUIRED`. The description and schemas are long and for catalogues, so only the body has them. */
export function requiredHeader({ resource: { url, mimeType }, extensions: all = {}, ...terms }: Offer): string {
  const { bazaar: _, ...extensions } = all;
  return encodedHeader({ ...terms, resource: { url, mimeType }, extensions });
}

/**
 * Makes the 402: the offer, and why the request is not paid.
 * @param error one of the protocol's codes, or a sentence.
 * @param reason a code beside a sentence, for the body and the log.
 */
export function refusal(offer: Offer, error: string, headers: Readonly<Record<string, string>> = {}, reason?: string) {
  const coded = reason === undefined ? {} : { reason };
  const body = { ...offer, error, ...coded };
  const all = { 'PAYMENT-REQUIRED': requiredHeader(body), 'Cache-Control': 'no-store', ...headers };
  return new Refusal(402, error, { body, headers: all, ...coded });
}

/** Makes the 402 for a payment that another request holds, or held a moment ago. Whether that request uses it is still open. */
export function busy(offer: Offer): Refusal {
  return refusal(offer, 'Payment is being settled, try again', { 'Retry-After': '1' }, 'payment_in_progress');
}
