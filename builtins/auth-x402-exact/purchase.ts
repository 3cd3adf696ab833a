import type { Exchange } from '../../plugins-sdk/index.ts';
import type { PaymentFacts } from '../shared/payment-facts.ts';
import type { About } from '../shared/payment-mark.ts';
import type { Ticket } from '../shared/payments.ts';
import type { Facilitator } from './facilitator.ts';
import type { Asked, Facilitators } from './facilitators.ts';
import type { Entry } from './kept-answers.ts';
import type { Offer } from './offer.ts';
import type { Payment } from './payload.ts';

/** One request's hold on a payment that was verified. */
export interface Purchase {
  readonly ticket: Ticket;
  readonly payment: Payment;
  readonly facilitators: Facilitators;
  /** The one that has found the payment good. */
  readonly verifier: Facilitator;
  readonly offer: Offer;
  /** Where the client has given it an identifier. */
  readonly identified: Entry | undefined;
  /** Of what is asked, once it is known. */
  fingerprint?: string;
  /** Begun once: what was paid for is the request, however many answers its mode gives, one after the other or at once. */
  settlement?: Promise<void>;
  /** Whether it was given back: a request that goes on asks for an answer that nobody pays. */
  isReleased?: true;
}

/** What facilitators are sent: what was checked or offered, and nothing else that a client may have added. */
export function askedOf({ requirements, signature, authorization, extensions }: Payment, offer: Offer): Asked {
  const { resource } = offer;
  if (resource === undefined) throw new Error('an offer names its resource');
  const told = offer.told(extensions);
  const payload = { signature, authorization };
  const sent = { x402Version: 2, resource, accepted: requirements, payload, ...(told && { extensions: told }) };
  return [sent, requirements, authorization.from];
}

/** What is known of a payment before it is settled. */
export function factsOf({ requirements, authorization }: Payment): PaymentFacts {
  return { network: requirements.network, payer: authorization.from, nonce: authorization.nonce };
}

/** With which an operator finds the payment on the chain, and its request in the log. @param now epoch milliseconds. */
export function aboutOf(
  { requirements, authorization }: Payment,
  { requestId, endpoint }: Exchange,
  now: number,
): About & { readonly nonce: string } {
  const { network, asset, amount } = requirements;
  const { from: payer, nonce, to: recipient, validBefore } = authorization;
  const what = { requestId, endpoint: `${endpoint.api}/${endpoint.name}`, network, asset, amount, payer, nonce };
  return { ...what, recipient, validBefore, since: now };
}

/** What the log says of a payment. */
export function detailsOf({ ticket }: Purchase) {
  const { recipient, validBefore, since, ...details } = ticket.about;
  return details;
}
