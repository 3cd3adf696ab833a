/** What a client is told to pay, and why: `PaymentRequired` of x402, version 2, in the body and the header of each 402. */
import type { PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { type Endpoint, Refusal } from '../../plugins-sdk/index.ts';
import { CATALOGUE_TEXT, detailsOf, publicUrlOf, tagsKey } from '../shared/discovery.ts';
import { type Accept, acceptsOf, boundsOf, secondsOf } from './terms.ts';

export type Offer = PaymentRequired;

export const PAYMENT_IDENTIFIER = 'payment-identifier';
/** The extension as the public library declares it. */
const identifierExtension = {
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

const CATALOGUE_NAME = new RegExp(CATALOGUE_TEXT);

/** Characters of the header `PAYMENT-REQUIRED`: nginx reads 4 KB of an answer's head unless `proxy_buffer_size` says otherwise. */
export const LONGEST_REQUIRED = 3200;

/**
 * What an endpoint costs at most.
 * @param bazaar what catalogues may be told of it; they are told nothing where nobody has said where it is sold.
 */
export function offerOf(endpoint: Endpoint, config: Readonly<Record<string, unknown>>, bazaar?: object): Offer {
  const { id, api, name, block, mode } = endpoint;
  const { title: serviceName = '' } = detailsOf(config).info;
  const tags = tagsKey.of(endpoint);
  // The service does not know how it is reached, and a Host header is the client's own word.
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

/** One way to pay, in the words of the protocol. */
export function requirementsOf(accept: Accept, amount = boundsOf(accept.amount).max): PaymentRequirements {
  const { asset, payTo, extra } = accept;
  const network = accept.network as PaymentRequirements['network'];
  return { scheme: 'exact', network, asset, amount, payTo, maxTimeoutSeconds: secondsOf(accept), extra };
}

/** JSON as the headers of the protocol carry it: in base64. */
export function encodedHeader(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64');
}

/** The header `PAYMENT-REQUIRED`. What is long and for catalogues, the description and schemas, stands in the body alone. */
export function requiredHeader({ resource: { url, mimeType }, extensions: all = {}, ...terms }: Offer): string {
  const { bazaar: _, ...extensions } = all;
  return encodedHeader({ ...terms, resource: { url, mimeType }, extensions });
}

/**
 * What is offered, and why what was paid is not enough.
 * @param error one of the protocol's codes, or a sentence.
 * @param reason a code that stands beside a sentence, in the body and in the log.
 */
export function refusal(offer: Offer, error: string, headers: Readonly<Record<string, string>> = {}, reason?: string) {
  const coded = reason === undefined ? {} : { reason };
  const body = { ...offer, error, ...coded };
  const all = { 'PAYMENT-REQUIRED': requiredHeader(body), 'Cache-Control': 'no-store', ...headers };
  return new Refusal(402, error, { body, headers: all, ...coded });
}

/** Another request holds the payment, or did until a moment ago; whether it will be used is open. */
export function busy(offer: Offer): Refusal {
  return refusal(offer, 'Payment is being settled, try again', { 'Retry-After': '1' }, 'payment_in_progress');
}
