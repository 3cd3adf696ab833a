/** Lets a request in that pays what it costs, or has paid it before. */
import {
  type AuthMethod,
  type CallContext,
  ContextKey,
  type Exchange,
  type Services,
} from '../../plugins-sdk/index.ts';
import { Attempts } from '../shared/attempts.ts';
import { identifiersOf, type Sold } from './kept-answers.ts';
import { type Quote, type Quoting, refusal } from './offer.ts';
import { isSignedByPayer, paymentIn } from './payload.ts';
import type { Purchase, Purchases } from './purchases.ts';

const HEADER = 'payment-signature';

export const attempts = new Attempts('x402-exact', 'rateLimit.x402Exact', 'signatures', 120);

/** One request at an endpoint that is sold. */
export interface Visit {
  readonly quote: Quote;
  /** Begun once: the offer is that of all methods of the endpoint, and so is what it comes to. */
  entrance?: Promise<void>;
  purchase?: Purchase;
  /** What was sold before, and is given again. */
  sold?: Sold;
  /** Of what is asked. */
  fingerprint?: string;
  /** Milliseconds of the budget that it took to be let in, of a request that was let in for what it costs. */
  spent?: number;
}

export const visits = new ContextKey<Visit>('x402-exact visit');

export function authenticator(services: Services, quoteOf: Quoting, bought: Purchases) {
  const attempt = attempts.in(services);
  const identifierOf = identifiersOf(services);

  const enter = async (visit: Visit, exchange: Exchange, call: CallContext): Promise<void> => {
    const { isFree, offer } = visit.quote;
    if (isFree) return;
    const text = exchange.headers[HEADER];
    if (text === undefined) throw refusal(offer, 'PAYMENT-SIGNATURE header is required');
    await attempt(exchange, async () => {
      const payment = paymentIn(text, visit.quote, services.now());
      const identified = identifierOf(payment);
      const found = await identified?.find();
      // Whoever sends the payment itself again has what it bought; another payment has to be of the same payer.
      if (found && !found.isSame && !isSignedByPayer(payment)) await bought.verify(payment);
      if (found) visit.sold = found.sold;
      else visit.purchase = await bought.hold({ payment, exchange, identified }, () => call.signal.aborted);
    });
  };

  return async (_: AuthMethod, exchange: Exchange, call: CallContext): Promise<true> => {
    const began = performance.now();
    const visit = visits.get(exchange) ?? { quote: await quoteOf(exchange.parameters, exchange) };
    visits.set(exchange, visit);
    visit.entrance ??= enter(visit, exchange, call);
    await visit.entrance;
    visit.spent ??= performance.now() - began;
    return true;
  };
}
