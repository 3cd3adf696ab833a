import type { PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { type Endpoint, Refusal } from '../../plugins-sdk/index.ts';
import { secondsOf, type Terms } from './terms.ts';

/** What a client gets that has not paid (x402 version 2, `PaymentRequired`), and why. */
export function offered(endpoint: Endpoint, all: readonly Terms[], error: string): PaymentRequired {
  const { id, api, name, block, mode } = endpoint;
  const [publicUrl = ''] = all.flatMap((terms) => terms.publicUrl ?? []);
  return {
    x402Version: 2,
    error,
    resource: {
      // The service does not know how it is reached, and a Host header is the client's own word.
      url: `${publicUrl.replace(/\/+$/, '')}/endpoints/${id}`,
      description: typeof block.description === 'string' ? block.description : `${api}/${name}`,
      mimeType: mode === 'stream' ? 'text/event-stream' : 'application/json',
    },
    accepts: all.flatMap(requirementsOf),
  };
}

/** What an auth object accepts, in the words of the protocol. */
export function requirementsOf({ accepts }: Terms): PaymentRequirements[] {
  return accepts.map((accept) => {
    const { asset, amount, payTo, extra } = accept;
    const network = accept.network as PaymentRequirements['network'];
    return { scheme: 'exact', network, asset, amount, payTo, maxTimeoutSeconds: secondsOf(accept), extra };
  });
}

/** JSON as the headers of the protocol carry it: in base64. */
export function encodedHeader(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64');
}

export interface PaymentRefusal {
  /** `false`: it belongs to the protocol and is no failure. */
  readonly failure?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  /** A code that stands beside a sentence, in the body and in the log. */
  readonly reason?: string;
}

/** An endpoint's refusals of payments: each says what to pay, and why what was paid is not enough. */
export class Offer {
  readonly #offered: PaymentRequired;

  constructor(endpoint: Endpoint, all: readonly Terms[]) {
    this.#offered = offered(endpoint, all, '');
  }

  get resource(): PaymentRequired['resource'] {
    return this.#offered.resource;
  }

  /** @param error one of the protocol's codes, or a sentence. */
  refusal(error: string, { failure = true, headers = {}, reason }: PaymentRefusal = {}): Refusal {
    const body = { ...this.#offered, error, ...(reason === undefined ? {} : { reason }) };
    const all = { 'PAYMENT-REQUIRED': encodedHeader(body), 'Cache-Control': 'no-store', ...headers };
    return new Refusal(402, error, { body, headers: all, failure, ...(reason === undefined ? {} : { reason }) });
  }

  /** Another request holds the payment, or did until a moment ago; whether it will be used is open. */
  busy(): Refusal {
    const headers = { 'Retry-After': '1' };
    return this.refusal('Payment is being settled, try again', { headers, reason: 'payment_in_progress' });
  }
}
