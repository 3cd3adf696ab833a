import {
  addAnswerHeaders,
  type Behaviour,
  createHttpClient,
  definePlugin,
  type Endpoint,
  type Exchange,
  type HttpClient,
  perEndpoint,
  perMethod,
  type Services,
  type Taps,
} from '../../plugins-sdk/index.ts';
import type { Measure } from '../../plugins-sdk/observe.ts';
import { discoveryKey, isSold } from '../shared/discovery.ts';
import { givenBack, PaymentKeys, Payments } from '../shared/payments.ts';
import {
  attempts,
  authenticator,
  type Means,
  type Method,
  purchases,
  refusedAs,
  repeats,
  sameParameters,
  spent,
} from './authenticate.ts';
import { bazaarOf } from './bazaar.ts';
import { checkAllTerms } from './check-terms.ts';
import { Facilitator } from './facilitator.ts';
import { Facilitators } from './facilitators.ts';
import { Entry, fingerprintOf, roomIn, soldAgain } from './kept-answers.ts';
import { Offer } from './offer.ts';
import { openApiPart } from './openapi.ts';
import { operationsOn } from './operations.ts';
import type { Payment } from './payload.ts';
import { requireProviders } from './plugin-price.ts';
import { Purchases } from './purchases.ts';
import { Quotes } from './quote.ts';
import { facilitatorsOf, methodsOf, type Sale, TermsSchema, TYPE } from './terms.ts';

const NAME = 'auth-x402-exact';

/** Milliseconds per request for this plugin. */
const BUDGET_MS = 60_000;
/** The parts of the budget for the facilitator: what is left lets this plugin refuse in its own words before its budget ends. */
const VERIFY_PART = 1 / 6;
const SETTLE_PART = 2 / 3;

/** How a settlement ends. */
const OUTCOMES = ['settled', 'unsettled', 'unknown'];
/** Of payments: alerts see the first event only beside a zero before it. */
const initial = [...OUTCOMES, 'refused', 'unavailable', 'limited', 'released'].map((outcome) => ({ outcome }));

const keys = new PaymentKeys(TYPE);

/** Standard x402, version 2, scheme `exact` on EVM: verified before the upstream is asked, settled once the answer is signed. */
export const authX402Exact = definePlugin({
  name: NAME,
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

/** Tells operators of a facilitator that does not do what they count on. It may be away: that is no reason not to start. */
async function inspect(facilitator: Facilitator, { terms }: Method, { log }: Services, isOver: () => boolean) {
  const { origin } = facilitator;
  try {
    const networks = new Set(await facilitator.networks());
    for (const network of new Set(terms.accepts.map((accept) => accept.network)))
      if (!networks.has(network) && !networks.has('eip155:*'))
        log.warn(`the facilitator at ${origin} does not say that it settles exact payments on ${network}`);
  } catch (error) {
    if (isOver()) return;
    const detail = error instanceof Error ? error.message : String(error);
    log.warn(`the facilitator at ${origin} could not be asked what it supports`, { detail });
  }
}

function meansOf(services: Services, client: HttpClient, budget: number): Means {
  const { endpoints, now, config, describe, log, prices } = services;
  const document = discoveryKey.in(config) === false ? undefined : describe().document;
  const methodOf = perMethod(endpoints, TYPE, TermsSchema, (terms): Method => {
    const named = facilitatorsOf(terms);
    // Each may be asked whether a payment is good, one after the other; the settlement is one's alone.
    const timeouts = { verify: (budget * VERIFY_PART) / named.length, settle: budget * SETTLE_PART };
    const all = named.map((one) => new Facilitator(client, one, timeouts));
    return { terms, facilitators: new Facilitators(all, log) };
  });
  const quotes = perEndpoint(endpoints, (endpoint) => {
    const terms = new Map(methodsOf(endpoint).map((method) => [method, methodOf(method).terms]));
    const bazaar = document && bazaarOf(document, endpoint);
    return new Quotes(endpoint, terms, Offer.of(endpoint, [...terms.values()], config, bazaar), prices);
  });
  const room = roomIn(services);
  const identifiedBy = (payment: Payment, id: string) => new Entry(room, payment, id, now());
  return { now, methodOf, quotesOf: (exchange) => quotes(exchange.endpoint), identifiedBy };
}

/** All that can be sold. */
function salesOf(endpoints: readonly Endpoint[], { methodOf }: Means): Sale[] {
  return endpoints.flatMap((endpoint) => {
    const { api, name } = endpoint;
    const offers = methodsOf(endpoint).flatMap((method) => methodOf(method).terms.accepts);
    return offers.map(({ network, asset }) => ({ api, endpoint: name, network, asset }));
  });
}

function behaviour(services: Services): Behaviour {
  const { debts, now, log, meters, endpoints } = services;
  const client = createHttpClient();
  const budget = services.budget === 'none' ? BUDGET_MS : services.budget;
  const means = meansOf(services, client, budget);
  const help = 'Standard x402 payments, by what became of them';
  const counted = meters.counter({ name: 'x402_exact_payments_total', help, labels: ['outcome'], initial });
  const settlements = meters.counter({
    name: 'x402_exact_settlements_total',
    help: 'Settlements of standard payments, by what was sold, what it was paid with, and how they ended',
    labels: ['api', 'endpoint', 'network', 'asset', 'outcome'],
    initial: salesOf(endpoints, means).flatMap((sale) => OUTCOMES.map((outcome) => ({ ...sale, outcome }))),
  });
  const payments = Payments.in(services, keys);
  const bought = new Purchases({ payments, debts, now, log, counted, settlements });
  let isOver = false;
  return {
    start: () => {
      const methods = [...new Set(endpoints.flatMap(methodsOf))].map(means.methodOf);
      const terms = methods.map((method) => method.terms);
      requireProviders(terms, services.prices);
      for (const method of methods)
        for (const one of method.facilitators.all) void inspect(one, method, services, () => isOver);
    },
    stop: () => {
      isOver = true;
      return client.close();
    },
    operations: operationsOn({ payments, log, now }, client),
    hooks: {
      ...hooksOn(means, bought, { budget, node: services.node, counted, draw: attempts.in(services) }),
      ...sameParameters(endpoints, means),
    },
  };
}

interface HookOptions {
  /** Milliseconds for a request. */
  readonly budget: number;
  /** The signer's address. */
  readonly node: string;
  readonly counted: Measure<'outcome'>;
  draw(exchange: Exchange): Promise<void>;
}

function hooksOn(means: Means, bought: Purchases, { budget, node, counted, draw }: HookOptions): Taps {
  return {
    authenticate: { [TYPE]: authenticator(means, bought, draw) },
    answer: (question, exchange) => {
      const purchase = purchases.get(exchange);
      if (purchase?.isReleased) throw givenBack();
      if (purchase !== undefined) purchase.fingerprint = fingerprintOf(question);
      const sold = repeats.get(exchange);
      if (sold === undefined) return undefined;
      const answer = soldAgain(sold, question, node);
      if (sold.settled !== '') addAnswerHeaders(exchange, { 'PAYMENT-RESPONSE': sold.settled });
      return answer;
    },
    approve: async (answer, exchange, { signal }) => {
      const purchase = purchases.get(exchange);
      const sold = repeats.get(exchange);
      // Nobody pays for anything else in its place.
      if (sold !== undefined && sold.answer !== answer.json) throw givenBack();
      if (purchase === undefined) return;
      const latest = performance.now() + budget * (1 - SETTLE_PART) - (spent.get(exchange) ?? 0);
      await bought.settle(purchase, exchange, () => signal.aborted || performance.now() > latest);
      await purchase.identified?.keep(answer, purchase.fingerprint ?? '', exchange);
    },
    concluded: (outcome, exchange) => {
      const purchase = purchases.get(exchange);
      if (purchase !== undefined) return outcome.kind === 'signed' ? undefined : bought.release(purchase);
      const isRepeated = repeats.get(exchange) !== undefined && outcome.kind === 'signed';
      const ended = isRepeated ? 'repeated' : refusedAs(exchange, outcome.kind === 'abandoned');
      if (ended !== undefined) counted({ outcome: ended }, 1);
      return undefined;
    },
  };
}
