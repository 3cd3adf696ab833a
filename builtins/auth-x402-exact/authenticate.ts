/** Lets a request in that pays what it costs, or has paid it before. */
import {
  type AuthMethod,
  type CallContext,
  ContextKey,
  type Exchange,
  isRefusal,
  type Refusal,
} from '../../plugins-sdk/index.ts';
import { Attempts } from '../shared/attempts.ts';
import { refusalOf } from '../shared/payments.ts';
import type { Facilitators } from './facilitators.ts';
import { Entry, identifierIn, type Room, type Sold } from './kept-answers.ts';
import { type Offer, refusal } from './offer.ts';
import { isSignedByPayer, type Payment, PaymentFault, paymentIn } from './payload.ts';
import type { Quote, Quoting } from './price.ts';
import type { Purchase, Purchases, Wanted } from './purchases.ts';

const HEADER = 'payment-signature';

export const attempts = new Attempts({
  ...{ path: 'rateLimit.x402Exact', what: 'signatures', max: 120, name: 'x402-exact' },
});

/** What every request is looked at with. */
export interface Means {
  now(): number;
  facilitatorsOf(method: AuthMethod): Facilitators;
  quote: Quoting;
  readonly room: Room;
  readonly bought: Purchases;
  draw(exchange: Exchange): Promise<void>;
}

/** One request at an endpoint that is sold. */
export interface Visit {
  readonly exchange: Exchange;
  readonly quote: Quote;
  /** What it has come with, for whichever of the endpoint's methods. */
  payment?: Payment;
  /** Why it was not taken: what a later method has to say would hide it. */
  refusal?: Refusal;
  purchase?: Purchase;
  /** What was sold before, and is given again. */
  sold?: Sold;
  /** Of what is asked. */
  fingerprint?: string;
  /** Milliseconds of the budget that it took to be let in, of a request that was let in for what it costs. */
  spent?: number;
}

export const visits = new ContextKey<Visit>('x402-exact visit');

export function authenticator(means: Means) {
  return async (method: AuthMethod, exchange: Exchange, call: CallContext): Promise<true> => {
    const began = performance.now();
    const visit = visits.get(exchange) ?? { exchange, quote: await means.quote(exchange.parameters, exchange) };
    visits.set(exchange, visit);
    if (!visit.quote.isFree) await pay(visit, method, call, means);
    visit.spent = performance.now() - began;
    return true;
  };
}

/** @throws Refusal */
async function pay(visit: Visit, method: AuthMethod, call: CallContext, means: Means): Promise<void> {
  const { offer, methods } = visit.quote;
  const text = visit.exchange.headers[HEADER];
  if (text === undefined) throw refusal(offer, 'PAYMENT-SIGNATURE header is required');
  await means.draw(visit.exchange);
  if (visit.refusal !== undefined) throw visit.refusal;
  try {
    visit.payment ??= paymentFor(offer, text, means.now());
    const { payment } = visit;
    if (methods[offer.accepts.indexOf(payment.requirements)] === method)
      return await buy(visit, payment, means.facilitatorsOf(method), call, means);
  } catch (error) {
    if (isRefusal(error)) visit.refusal = error;
    throw error;
  }
  // Another method of the endpoint has its turn.
  throw refusal(offer, 'invalid_payment_requirements');
}

function paymentFor(offer: Offer, text: string, now: number): Payment {
  try {
    return paymentIn(text, offer.accepts, now);
  } catch (error) {
    throw error instanceof PaymentFault ? refusal(offer, error.message) : error;
  }
}

/** Takes a request's payment, or finds what it has paid for. */
async function buy(
  visit: Visit,
  payment: Payment,
  facilitators: Facilitators,
  call: CallContext,
  { room, bought, now }: Means,
): Promise<void> {
  const id = identifierIn(payment);
  const identified = id === undefined ? undefined : new Entry(room, payment, id, now());
  const wanted = { payment, exchange: visit.exchange, facilitators, offer: visit.quote.offer, identified };
  const sold = await soldBefore(wanted, bought);
  if (sold !== undefined) visit.sold = sold;
  else visit.purchase = await bought.hold(wanted, () => call.signal.aborted);
}

/** What the payer has bought by the identifier. Whoever sends the payment itself again has it; another one has to be the payer's. */
async function soldBefore(wanted: Wanted, bought: Purchases): Promise<Sold | undefined> {
  try {
    const found = await wanted.identified?.find();
    if (found !== undefined && !found.isSame && !isSignedByPayer(wanted.payment)) await bought.verify(wanted);
    return found?.sold;
  } catch (error) {
    throw refusalOf(error);
  }
}
