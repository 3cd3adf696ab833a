/** The 402 that says what to pay, and the check that a transaction has paid it. */
import { isSameHex } from '../../lib/eth/hex.ts';
import { type Exchange, Refusal } from '../../plugins-sdk/index.ts';
import type { Address } from '../../plugins-sdk/signing.ts';
import { isZeroAddress } from '../shared/auth-objects.ts';
import { AUTHORIZATION_USED, type EventLog, type Mined, transferred } from '../shared/chain.ts';
import { wrongSigner } from './proof.ts';
import { expiryOf, greatestAge, type Terms } from './terms.ts';

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

const SUCCESS = '0x1';

type Asked = Pick<Terms, 'token' | 'amount' | 'recipient' | 'expiry'>;

/**
 * Checks that a mined transaction pays what the terms ask.
 *
 * @param signer the account that signed the proof.
 * @param now milliseconds of the Unix epoch.
 * @throws Refusal 401 that names the failed check.
 */
export function checkPayment(mined: Mined, terms: Asked, signer: Address, now: number): void {
  const { transaction, receipt, minedAt } = mined;
  if (!isSameHex(transaction.from, signer)) throw wrongSigner('signed by another account than the one that paid');
  const mismatch = (reason: string) => new Refusal(401, 'Payment does not match', { reason });
  if (receipt.status !== SUCCESS) throw mismatch('the transaction was reverted');
  if (isZeroAddress(terms.token) ? !paysNative(mined, terms) : !paysToken(mined, terms))
    throw mismatch('it does not pay this amount of this token to this recipient');
  if (now - minedAt > greatestAge(terms)) throw new Refusal(401, 'Payment too old');
}

/** Whether the transaction itself transfers the native asset; transfers by a contract that it calls do not count. */
function paysNative({ transaction: { to, value } }: Mined, { recipient, amount }: Asked): boolean {
  return isSameHex(to ?? '', recipient) && BigInt(value) >= BigInt(amount);
}

/**
 * Whether one transfer is large enough; several small ones do not add up. Any account may have sent the tokens, but for those
 * whose authorisation is used: anybody may send one to the chain, and it pays by the scheme x402-exact.
 */
function paysToken({ receipt: { logs } }: Mined, { token, recipient, amount }: Asked): boolean {
  const authorizers = logs
    .filter(({ address, topics: [event = ''] }) => isSameHex(address, token) && isSameHex(event, AUTHORIZATION_USED))
    .map(({ topics }) => topics[1]?.toLowerCase());
  const isPaid = (log: EventLog) => (transferred(log, { token, to: recipient }) ?? -1n) >= BigInt(amount);
  return logs.some((log) => isPaid(log) && !authorizers.includes(log.topics[1]?.toLowerCase()));
}
