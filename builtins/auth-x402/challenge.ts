import { type Exchange, Refusal } from '../../plugins-sdk/index.ts';
import { expiryOf, type Terms } from './terms.ts';

/** The error of a challenge whose request has a header that is no proof. */
export const INVALID_PROOF = 'Invalid payment proof';

/** Makes the 402 that says what to pay. @param now epoch milliseconds. @param invalid why the header, if any, is no proof. */
export function challenge(terms: Terms, exchange: Exchange, node: string, now: number, invalid?: string): Refusal {
  const { amount, token, network, recipient } = terms;
  const body = {
    node,
    endpointId: exchange.endpoint.id,
    amount,
    token,
    network,
    recipient,
    expiresAt: Math.floor((now + expiryOf(terms)) / 1000),
  };
  if (invalid === undefined) return new Refusal(402, 'Payment required', { body });
  return new Refusal(402, INVALID_PROOF, { body: { ...body, error: INVALID_PROOF }, reason: invalid });
}
