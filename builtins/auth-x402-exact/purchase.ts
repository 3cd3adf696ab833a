import type { Exchange } from '../../plugins-sdk/index.ts';
import type { PaymentFacts } from '../shared/payment-facts.ts';
import type { PaymentRecord } from '../shared/payment-records.ts';
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
  /** Begun once: what was paid for is the request, however many answers its mode gives, one after the other or at once. */
  settlement?: Promise<void>;
  /** Whether it was given back: whoever goes on asks for an answer that nobody pays. */
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

/** With which an operator finds the payment on the chain, and its request in the log. */
export function detailsOf({ payment }: Purchase, { requestId, endpoint }: Exchange) {
  const { requirements, authorization } = payment;
  const { network, asset, amount } = requirements;
  const { from: payer, nonce } = authorization;
  return { requestId, endpoint: `${endpoint.api}/${endpoint.name}`, network, asset, amount, payer, nonce };
}

export function recordOf(purchase: Purchase, exchange: Exchange, now: number): PaymentRecord {
  const { authorization } = purchase.payment;
  const { to: recipient, validBefore } = authorization;
  const { payment, token } = purchase.ticket;
  return { ...detailsOf(purchase, exchange), payment, token, recipient, validBefore, since: now, fate: 'settling' };
}

/** @param said by the facilitator, of a payment whose fate is not what it should be. */
export function saidOf(purchase: Purchase, exchange: Exchange, said: string) {
  return { ...detailsOf(purchase, exchange), said };
}
