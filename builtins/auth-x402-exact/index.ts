/** Standard x402, version 2, scheme `exact` on EVM: verified before the upstream call, settled once the answer is signed. */
import { isDeepStrictEqual } from 'node:util';
import {
  type AuthMethod,
  addAnswerHeaders,
  type Behaviour,
  type CallContext,
  ContextKey,
  createHttpClient,
  definePlugin,
  type Exchange,
  perMethod,
  Refusal,
  type Services,
  type Taps,
} from '../../plugins-sdk/index.ts';
import { attemptsOf } from '../shared/attempts.ts';
import { isSold } from '../shared/discovery.ts';
import { Payments, paymentKeys } from '../shared/payments.ts';
import { checkAllTerms } from './check-terms.ts';
import { type FacilitatorsOf, facilitatorsFor, SETTLE_PART } from './facilitators.ts';
import { identifiersOf, type Sold, soldAgain } from './kept-answers.ts';
import { type Quote, type Quoting, quotingOf, refusal, requireProviders } from './offer.ts';
import { openApiPart } from './openapi.ts';
import { operationsOn } from './operations.ts';
import { isSignedByPayer, paymentIn, sentIn } from './payload.ts';
import { type Purchase, Purchases } from './purchases.ts';
import { acceptsOf, type Terms, TermsSchema, TYPE } from './terms.ts';

/** The plugin's default budget, in milliseconds per request. */
const BUDGET_MS = 60_000;
/** The share of the budget that a settlement leaves, to write it down: when the budget ends, the payer gets no answer. */
const RECORD_PART = 1 / 12;

const keys = paymentKeys(TYPE);
const attempts = attemptsOf('x402-exact', 'rateLimit.x402Exact', 'Payment signatures', 120);

/** What the plugin knows of one request at a paid endpoint. */
interface Visit {
  readonly quote: Quote;
  /** The admission, begun once per request: the offer covers all methods of the endpoint, so they share one outcome. */
  entrance?: Promise<void>;
  purchase?: Purchase;
  /** The answer that was sold before, and that this request gets again. */
  sold?: Sold;
  /** The question's key. */
  questionKey?: string;
  /** Milliseconds of the budget that the admission took; undefined until this plugin has admitted the request. */
  spent?: number;
}

const visits = new ContextKey<Visit>('x402-exact visit');

export const authX402Exact = definePlugin({
  name: 'auth-x402-exact',
  budget: BUDGET_MS,
  auth: { [TYPE]: TermsSchema },
  keys: attempts.keys,
  // The public client libraries send the second header by mistake, and browsers block the request unless CORS allows it.
  credentials: ['PAYMENT-SIGNATURE', 'Access-Control-Expose-Headers'],
  exposes: ['PAYMENT-REQUIRED', 'PAYMENT-RESPONSE'],
  isAnnounced: (endpoints) => endpoints.some(isSold),
  requiresSharedState: { auth: [TYPE] },
  check: (context) => [...checkAllTerms(context)],
  openapi: ({ endpoints }) => (endpoints.some(isSold) ? openApiPart : {}),
  setup: (services) => (services.endpoints.some(isSold) ? behaviour(services) : {}),
});

function behaviour(services: Services): Behaviour {
  const { endpoints, log, prices, node } = services;
  const budget = services.budget === 'none' ? BUDGET_MS : services.budget;
  const client = createHttpClient();
  const payments = Payments.in(services, keys);
  const prepare = (terms: Terms) => facilitatorsFor(terms, client, log, budget);
  const facilitatorsOf = perMethod(endpoints, TYPE, TermsSchema, prepare);
  const quoteOf = quotingOf(services);
  const bought = new Purchases(services, payments, facilitatorsOf);
  const authenticate = { [TYPE]: authenticator(services, facilitatorsOf, quoteOf, bought) };
  let isOver = false;
  return {
    start: () => {
      requireProviders(endpoints, prices);
      payments.requireSafe();
      const methods = endpoints.flatMap(acceptsOf).map(({ method }) => method);
      for (const facilitators of new Set(methods.map(facilitatorsOf))) void facilitators.inspect(() => isOver);
    },
    stop: () => {
      isOver = true;
      return client.close();
    },
    operations: operationsOn(services, payments, client),
    hooks: { authenticate, ...hooksOn(quoteOf, bought, budget, node) },
  };
}

/** Makes the function that admits a request which pays its price, or has paid it before. */
function authenticator(services: Services, facilitatorsOf: FacilitatorsOf, quoteOf: Quoting, bought: Purchases) {
  const attempt = attempts.in(services);
  const identifierOf = identifiersOf(services);

  const enter = async (visit: Visit, exchange: Exchange, call: CallContext): Promise<void> => {
    const { offer } = visit.quote;
    if (offer.accepts.some(({ amount }) => amount === '0')) return;
    const text = exchange.headers['payment-signature'];
    if (text === undefined) throw refusal(offer, 'PAYMENT-SIGNATURE header is required');
    await attempt(exchange, async () => {
      const sent = sentIn(text, offer);
      const identified = identifierOf(sent);
      const found = await identified?.find();
      // The payment that bought the answer is proof enough, whatever is offered by now.
      if (found?.isSame) {
        visit.sold = found.sold;
        return;
      }
      const payment = paymentIn(sent, visit.quote, services.now());
      // For another payment, the payer's signature must be checked.
      if (found && !isSignedByPayer(payment)) await facilitatorsOf(payment.method).verify(payment);
      if (found) visit.sold = found.sold;
      else visit.purchase = await bought.hold(payment, exchange, identified, () => call.signal.aborted);
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

const unsold = () => new Refusal(402, 'Payment required', { reason: 'the answer is not the one that was sold' });

/** Makes the functions of the other stages. @param budget milliseconds per request. @param node the signer's address. */
function hooksOn(quoteOf: Quoting, bought: Purchases, budget: number, node: string): Taps {
  return {
    validate: async (parameters, exchange) => {
      const visit = visits.get(exchange);
      if (visit?.spent === undefined || parameters === exchange.parameters) return undefined;
      const { offer } = await quoteOf(parameters, exchange);
      if (isDeepStrictEqual(offer.accepts, visit.quote.offer.accepts)) return undefined;
      const reason = 'a plugin has changed a parameter that the price depends on';
      throw new Refusal(500, 'Internal server error', { reason });
    },
    answer: (question, exchange) => {
      const visit = visits.get(exchange);
      if (visit === undefined) return undefined;
      visit.questionKey = question.key;
      return visit.sold && soldAgain(visit.sold, question, node);
    },
    approve: async (answer, exchange, { signal }) => {
      const { purchase, sold, questionKey = '', spent = 0 } = visits.get(exchange) ?? {};
      // Another answer in place of the sold one would be unpaid.
      if (sold !== undefined && sold.answer !== answer.json) throw unsold();
      if (sold !== undefined) addAnswerHeaders(exchange, { 'PAYMENT-RESPONSE': sold.settled });
      if (purchase === undefined) return;
      const latest = performance.now() + budget * (1 - SETTLE_PART - RECORD_PART) - spent;
      const keep = () => purchase.identified?.keep(answer, questionKey, exchange);
      await bought.settle(purchase, () => signal.aborted || performance.now() > latest, keep);
    },
    concluded: (outcome, exchange) => {
      const { purchase, sold } = visits.get(exchange) ?? {};
      const isSigned = outcome.kind === 'signed';
      if (purchase !== undefined) return isSigned ? undefined : bought.release(purchase);
      const ended = sold && isSigned ? 'repeated' : attempts.refusedAs(exchange, outcome);
      if (ended !== undefined) bought.reports.count(ended);
      return undefined;
    },
  };
}
