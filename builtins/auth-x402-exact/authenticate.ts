/** Lets a request in that pays what it costs, or has paid it before. */
import { type AuthMethod, type CallContext, ContextKey, type Exchange } from '../../plugins-sdk/index.ts';
import { Attempts } from '../shared/attempts.ts';
import type { identifiersOf, Sold } from './kept-answers.ts';
import { refusal } from './offer.ts';
import { isSignedByPayer, paymentIn } from './payload.ts';
import type { Quote, Quoting } from './price.ts';
import type { Purchase, Purchases } from './purchases.ts';

const HEADER = 'payment-signature';

export const attempts = new Attempts({
  ...{ path: 'rateLimit.x402Exact', what: 'signatures', max: 120, name: 'x402-exact' },
});

/** What every request is looked at with. */
export interface Means {
  now(): number;
  readonly quote: Quoting;
  readonly identifierOf: ReturnType<typeof identifiersOf>;
  readonly bought: Purchases;
  readonly attempt: ReturnType<Attempts['in']>;
}

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

export function authenticator(means: Means) {
  return async (_: AuthMethod, exchange: Exchange, call: CallContext): Promise<true> => {
    const began = performance.now();
    const visit = visits.get(exchange) ?? { quote: await means.quote(exchange.parameters, exchange) };
    visits.set(exchange, visit);
    visit.entrance ??= enter(visit, exchange, call, means);
    await visit.entrance;
    visit.spent ??= performance.now() - began;
    return true;
  };
}

/** @throws Refusal */
async function enter(visit: Visit, exchange: Exchange, call: CallContext, means: Means): Promise<void> {
  const { quote } = visit;
  if (quote.isFree) return;
  const text = exchange.headers[HEADER];
  if (text === undefined) throw refusal(quote.offer, 'PAYMENT-SIGNATURE header is required');
  await means.attempt(exchange, async () => {
    const payment = paymentIn(text, quote, means.now());
    const identified = means.identifierOf(payment);
    const found = await identified?.find();
    if (found === undefined) {
      visit.purchase = await means.bought.hold({ payment, exchange, identified }, () => call.signal.aborted);
      return;
    }
    // Whoever sends the payment itself again has what it bought; another payment has to be of the same payer.
    if (!found.isSame && !isSignedByPayer(payment)) await means.bought.verify(payment);
    visit.sold = found.sold;
  });
}
