import {
  type AuthMethod,
  type CallContext,
  ContextKey,
  type Endpoint,
  type Exchange,
  isRefusal,
  Refusal,
  type Taps,
} from '../../plugins-sdk/index.ts';
import { Attempts } from '../shared/attempts.ts';
import { payment as paidBy } from '../shared/payment-facts.ts';
import { refusalOf } from '../shared/payments.ts';
import type { Facilitators } from './facilitators.ts';
import { type Entry, identifierIn, type Sold } from './kept-answers.ts';
import { isSignedByPayer } from './payer.ts';
import { decodePayment, matchPayment, type Payment, PaymentFault } from './payload.ts';
import { factsOf, type Purchase } from './purchase.ts';
import type { Purchases } from './purchases.ts';
import type { Quote, Quotes } from './quote.ts';
import { methodsOf, type Terms } from './terms.ts';

const HEADER = 'payment-signature';

export const attempts = new Attempts({
  ...{ path: 'rateLimit.x402Exact', what: 'signatures', max: 120, name: 'x402-exact' },
  refusal: () => new Refusal(401, 'Too many x402 verification attempts — slow down'),
});

/** One auth object of this type. */
export interface Method {
  readonly terms: Terms;
  readonly facilitators: Facilitators;
}

/** What every request is looked at with. */
export interface Means {
  readonly now: () => number;
  methodOf(method: AuthMethod): Method;
  quotesOf(exchange: Exchange): Quotes;
  identifiedBy(payment: Payment, id: string): Entry;
}

/** What a request has come with: a payment for one of its endpoint's methods, or what is wrong with it. */
type Claim = { readonly payment: Payment; readonly method: AuthMethod } | { readonly refusal: Refusal };

const claims = new ContextKey<Claim>('x402-exact claim');
/** The payment that a request has been let in for. */
export const purchases = new ContextKey<Purchase>('x402-exact purchase');
/** What was sold before, and is given again. */
export const repeats = new ContextKey<Sold>('x402-exact repeat');
/** Milliseconds of the budget that it took to be let in, of a request that was let in for what it costs. */
export const spent = new ContextKey<number>('x402-exact time');

/** Finds out which of its endpoint's methods a request pays for, if any. */
function claimIn(text: string, { accepts, offer }: Quote, { now }: Means): Claim {
  try {
    const payment = matchPayment(decodePayment(text), [...accepts.values()].flat(), now());
    const [method] = [...accepts].find(([, offers]) => offers.includes(payment.requirements)) ?? [];
    if (method === undefined) throw new Error('what was matched is offered');
    return { payment, method };
  } catch (error) {
    if (error instanceof PaymentFault) return { refusal: offer.refusal(error.message) };
    throw error;
  }
}

/** @returns what takes a request's payment, or finds what it has paid for. */
function buyer(means: Means, bought: Purchases) {
  return async (
    claim: Claim,
    quote: Quote,
    method: AuthMethod,
    exchange: Exchange,
    call: CallContext,
  ): Promise<void> => {
    if ('refusal' in claim) throw claim.refusal;
    const { offer } = quote;
    // Another method of the endpoint has its turn.
    if (claim.method !== method) throw offer.refusal('invalid_payment_requirements');
    const { facilitators } = means.methodOf(method);
    const { payment } = claim;
    try {
      const id = identifierIn(payment);
      const identified = id === undefined ? undefined : means.identifiedBy(payment, id);
      const sold =
        identified && (await soldBefore(identified, payment, () => bought.verify(payment, facilitators, offer)));
      if (sold !== undefined) return repeats.set(exchange, sold);
      const wanted = { payment, facilitators, offer, identified };
      const purchase = await bought.hold(wanted, exchange, () => call.signal.aborted);
      purchases.set(exchange, purchase);
      paidBy.set(exchange, factsOf(payment));
    } catch (error) {
      // What a later method has to say would hide it.
      if (isRefusal(error)) claims.set(exchange, { refusal: error });
      throw error;
    }
  };
}

/** Lets a request in that pays, or has paid. */
export function authenticator(means: Means, bought: Purchases, draw: (exchange: Exchange) => Promise<void>) {
  const buy = buyer(means, bought);
  return async (method: AuthMethod, exchange: Exchange, call: CallContext): Promise<true> => {
    const began = performance.now();
    const quote = await means.quotesOf(exchange).of(exchange);
    if (!quote.isFree) {
      const text = exchange.headers[HEADER];
      if (text === undefined) throw quote.offer.refusal('PAYMENT-SIGNATURE header is required');
      await draw(exchange);
      const claim = claims.get(exchange) ?? claimIn(text, quote, means);
      claims.set(exchange, claim);
      await buy(claim, quote, method, exchange, call);
    }
    spent.set(exchange, performance.now() - began);
    return true;
  };
}

/** Has requests asked with what was paid for. Nobody needs to look where every price is fixed. */
export function sameParameters(endpoints: readonly Endpoint[], { methodOf, quotesOf }: Means): Pick<Taps, 'validate'> {
  const amounts = endpoints
    .flatMap(methodsOf)
    .flatMap((method) => methodOf(method).terms.accepts.map(({ amount }) => amount));
  if (amounts.every((amount) => typeof amount === 'string')) return {};
  return {
    validate: async (parameters, exchange): Promise<undefined> => {
      if (spent.get(exchange) !== undefined) await quotesOf(exchange).requireSame(parameters, exchange);
    },
  };
}

/**
 * What the payer has bought by the identifier. Whoever sends the payment itself again has it; another one has to be the payer's.
 * @param verify has it verified. @throws Refusal
 */
async function soldBefore(
  identified: Entry,
  payment: Payment,
  verify: () => Promise<unknown>,
): Promise<Sold | undefined> {
  try {
    const found = await identified.find();
    if (found !== undefined && !found.isSame && !isSignedByPayer(payment)) await verify();
    return found?.sold;
  } catch (error) {
    throw refusalOf(error);
  }
}

/**
 * How a request ended whose payment was not taken; nothing for one that came without.
 * @param hasLeft whether its client is gone, and so the reason itself why the payment was not verified.
 */
export function refusedAs(exchange: Exchange, hasLeft: boolean): string | undefined {
  const take = attempts.drawn(exchange);
  if (take === undefined) return undefined;
  if (!take.allowed) return 'limited';
  const claim = claims.get(exchange);
  const isUntold = claim !== undefined && 'refusal' in claim && claim.refusal.fault;
  return isUntold && !hasLeft ? 'unavailable' : 'refused';
}
