/** Standard x402, version 2, scheme `exact` on EVM: verified before the upstream is asked, settled once the answer is signed. */
import { isDeepStrictEqual } from 'node:util';
import {
  addAnswerHeaders,
  type Behaviour,
  createHttpClient,
  definePlugin,
  perMethod,
  Refusal,
  type Services,
  type Taps,
} from '../../plugins-sdk/index.ts';
import { isSold } from '../shared/discovery.ts';
import { givenBack, Payments, paymentKeys } from '../shared/payments.ts';
import { attempts, authenticator, visits } from './authenticate.ts';
import { checkAllTerms } from './check-terms.ts';
import { Facilitators, SETTLE_PART } from './facilitators.ts';
import { fingerprintOf, soldAgain } from './kept-answers.ts';
import { type Quoting, quotingOf, requireProviders } from './offer.ts';
import { openApiPart } from './openapi.ts';
import { operationsOn } from './operations.ts';
import { Purchases } from './purchases.ts';
import { acceptsOf, TermsSchema, TYPE } from './terms.ts';

/** Milliseconds per request for this plugin. */
const BUDGET_MS = 60_000;

const keys = paymentKeys(TYPE);

export const authX402Exact = definePlugin({
  name: 'auth-x402-exact',
  budget: BUDGET_MS,
  auth: { [TYPE]: TermsSchema },
  keys: attempts.keys,
  // The public client libraries send the second one by mistake: without leave a browser would not send the request.
  credentials: ['PAYMENT-SIGNATURE', 'Access-Control-Expose-Headers'],
  exposes: ['PAYMENT-REQUIRED', 'PAYMENT-RESPONSE'],
  isAnnounced: (endpoints) => endpoints.some(isSold),
  requiresSharedState: { auth: [TYPE] },
  check: checkAllTerms,
  openapi: ({ endpoints }) => (endpoints.some(isSold) ? openApiPart : {}),
  setup(services) {
    return services.endpoints.some(isSold) ? behaviour(services) : {};
  },
});

function behaviour(services: Services): Behaviour {
  const { endpoints, log, now, prices, node } = services;
  const budget = services.budget === 'none' ? BUDGET_MS : services.budget;
  const client = createHttpClient();
  const payments = Payments.in(services, keys);
  const facilitatorsOf = perMethod(
    endpoints,
    TYPE,
    TermsSchema,
    (terms) => new Facilitators(terms, client, log, budget),
  );
  const quoteOf = quotingOf(services);
  const bought = new Purchases(services, payments, facilitatorsOf);
  const authenticate = { [TYPE]: authenticator(services, quoteOf, bought) };
  let isOver = false;
  return {
    start: () => {
      requireProviders(endpoints, prices);
      const methods = endpoints.flatMap(acceptsOf).map(({ method }) => method);
      for (const facilitators of new Set(methods.map(facilitatorsOf))) void facilitators.inspect(() => isOver);
    },
    stop: () => {
      isOver = true;
      return client.close();
    },
    operations: operationsOn({ payments, log, now }, client),
    hooks: { authenticate, ...hooksOn(quoteOf, bought, budget, node) },
  };
}

/** @param budget milliseconds for a request. @param node the signer's address. */
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
      if (visit.purchase?.isReleased) throw givenBack();
      visit.fingerprint = fingerprintOf(question);
      const { sold } = visit;
      if (sold === undefined) return undefined;
      const answer = soldAgain(sold, question, node);
      if (sold.settled !== '') addAnswerHeaders(exchange, { 'PAYMENT-RESPONSE': sold.settled });
      return answer;
    },
    approve: async (answer, exchange, { signal }) => {
      const { purchase, sold, fingerprint = '', spent = 0 } = visits.get(exchange) ?? {};
      // Nobody pays for anything else in its place.
      if (sold !== undefined && sold.answer !== answer.json) throw givenBack();
      if (purchase === undefined) return;
      const latest = performance.now() + budget * (1 - SETTLE_PART) - spent;
      await bought.settle(purchase, () => signal.aborted || performance.now() > latest);
      await purchase.identified?.keep(answer, fingerprint, exchange);
    },
    concluded: (outcome, exchange) => {
      const { purchase, sold } = visits.get(exchange) ?? {};
      const isSigned = outcome.kind === 'signed';
      if (purchase !== undefined) return isSigned ? undefined : bought.release(purchase);
      const ended = sold && isSigned ? 'repeated' : attempts.refusedAs(exchange, outcome);
      if (ended !== undefined) bought.counts.add(ended);
      return undefined;
    },
  };
}
