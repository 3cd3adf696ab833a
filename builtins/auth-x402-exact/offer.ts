import { isDeepStrictEqual } from 'node:util';
import type { PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { type Endpoint, Refusal } from '../../plugins-sdk/index.ts';
import { memberAt } from '../shared/described.ts';
import { CATALOGUE_TEXT, detailsOf, publicUrlOf, tagsKey } from '../shared/discovery.ts';
import { type Accept, boundsOf, secondsOf, type Terms } from './terms.ts';

type Config = Readonly<Record<string, unknown>>;

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

/** What a client gets that has not paid (x402 version 2, `PaymentRequired`), and why. */
export function offered(endpoint: Endpoint, all: readonly Terms[], config: Config, error = ''): PaymentRequired {
  const { id, api, name, block, mode } = endpoint;
  const { title: serviceName = '' } = detailsOf(config).info;
  const tags = tagsKey.of(endpoint);
  return {
    x402Version: 2,
    error,
    resource: {
      // The service does not know how it is reached, and a Host header is the client's own word.
      url: `${publicUrlOf(endpoint, config)}/endpoints/${id}`,
      description: typeof block.description === 'string' ? block.description : `${api}/${name}`,
      mimeType: mode === 'stream' ? 'text/event-stream' : 'application/json',
      ...(CATALOGUE_NAME.test(serviceName) && { serviceName }),
      ...(tags && { tags: [...tags] }),
    },
    accepts: all.flatMap((terms) => requirementsOf(terms)),
  };
}

const CATALOGUE_NAME = new RegExp(CATALOGUE_TEXT);

/** Characters of the header `PAYMENT-REQUIRED`: nginx reads 4 KB of an answer's head unless `proxy_buffer_size` says otherwise. */
export const LONGEST_REQUIRED = 3200;

/** What the header says: what is long and for catalogues, the description and schemas, stands in the body alone. */
export function inHeader({ resource, extensions = {}, ...terms }: PaymentRequired): PaymentRequired {
  const { url = '', mimeType } = resource ?? {};
  const short = { ...terms, resource: { url, ...(mimeType !== undefined && { mimeType }) } };
  const { bazaar: _, ...own } = extensions;
  const whole = { ...short, extensions: own };
  return encodedHeader(whole).length <= LONGEST_REQUIRED ? whole : short;
}

/** The same with its extensions; one that tells nobody where it is sold is of no use. */
function extended(required: PaymentRequired, bazaar: object | undefined): PaymentRequired {
  const isTold = bazaar !== undefined && /^https?:/.test(required.resource?.url ?? '');
  return { ...required, extensions: { ...(isTold && { bazaar }), [PAYMENT_IDENTIFIER]: identifierExtension } };
}

/** What an auth object accepts, in the words of the protocol. @param amountOf each; without it what it costs at most. */
export function requirementsOf(
  { accepts }: Terms,
  amountOf = ({ amount }: Accept) => boundsOf(amount).max,
): PaymentRequirements[] {
  return accepts.map((accept) => {
    const { asset, payTo, extra } = accept;
    const network = accept.network as PaymentRequirements['network'];
    const amount = amountOf(accept);
    return { scheme: 'exact', network, asset, amount, payTo, maxTimeoutSeconds: secondsOf(accept), extra };
  });
}

/** JSON as the headers of the protocol carry it: in base64. */
export function encodedHeader(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64');
}

export interface PaymentRefusal {
  readonly headers?: Readonly<Record<string, string>>;
  /** A code that stands beside a sentence, in the body and in the log. */
  readonly reason?: string;
}

/** An endpoint's refusals of payments: each says what to pay, and why what was paid is not enough. */
export class Offer {
  readonly #offered: PaymentRequired;

  constructor(offered: PaymentRequired) {
    this.#offered = offered;
  }

  /** @param bazaar what catalogues may be told of it. */
  static of(endpoint: Endpoint, all: readonly Terms[], config: Config, bazaar: object | undefined): Offer {
    return new Offer(extended(offered(endpoint, all, config), bazaar));
  }

  /** The same for other amounts, none of which is longer. */
  asking(accepts: readonly PaymentRequirements[]): Offer {
    return new Offer({ ...this.#offered, accepts: [...accepts] });
  }

  /** What facilitators are told: for their catalogues, and of what a client has sent the extensions that are as they were offered. */
  told(extensions: unknown): Readonly<Record<string, unknown>> | undefined {
    const same = Object.entries(this.#offered.extensions ?? {}).filter(
      ([name, value]) => name === 'bazaar' || isDeepStrictEqual(memberAt(extensions, name), value),
    );
    return same.length === 0 ? undefined : Object.fromEntries(same);
  }

  get resource(): PaymentRequired['resource'] {
    return this.#offered.resource;
  }

  /** @param error one of the protocol's codes, or a sentence. */
  refusal(error: string, { headers = {}, reason }: PaymentRefusal = {}): Refusal {
    const body = { ...this.#offered, error, ...(reason === undefined ? {} : { reason }) };
    const all = { 'PAYMENT-REQUIRED': encodedHeader(inHeader(body)), 'Cache-Control': 'no-store', ...headers };
    return new Refusal(402, error, { body, headers: all, ...(reason === undefined ? {} : { reason }) });
  }

  /** Another request holds the payment, or did until a moment ago; whether it will be used is open. */
  busy(): Refusal {
    const headers = { 'Retry-After': '1' };
    return this.refusal('Payment is being settled, try again', { headers, reason: 'payment_in_progress' });
  }
}
