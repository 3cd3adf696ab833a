import type { PaymentRequirements } from '@x402/core/types';
import { payment as paidBy } from '../../plugins-sdk/context-keys.ts';
import {
  type AuthMethod,
  type Behaviour,
  type CallContext,
  ContextKey,
  createHttpClient,
  definePlugin,
  type Endpoint,
  type Exchange,
  isRefusal,
  MemoryArea,
  perEndpoint,
  perMethod,
  Refusal,
  type Services,
  StateKey,
} from '../../plugins-sdk/index.ts';
import { Attempts } from '../shared/attempts.ts';
import { discoveryKey } from '../shared/discovery.ts';
import { Holds } from '../shared/payment-holds.ts';
import { PaymentRecords } from '../shared/payment-records.ts';
import { givenBack } from '../shared/payments.ts';
import { bazaarExtensions } from './bazaar.ts';
import { checkAllTerms } from './check-terms.ts';
import { boundedFetch, Facilitator } from './facilitator.ts';
import { Facilitators } from './facilitators.ts';
import { type Core, loadCore, requireCdp } from './installed.ts';
import { Offer, requirementsOf } from './offer.ts';
import { openApiPart } from './openapi.ts';
import { operationsOn } from './operations.ts';
import { decodePayment, matchPayment, type Payment, PaymentFault } from './payload.ts';
import { factsOf, type Purchase, Purchases, type Sale } from './purchases.ts';
import { facilitatorsOf, type Terms, TermsSchema, TYPE } from './terms.ts';

const NAME = 'auth-x402-exact';
const HEADER = 'payment-signature';

/** Milliseconds per request for this plugin. */
const BUDGET_MS = 60_000;
/** The parts of the budget for the facilitator: what is left lets this plugin refuse in its own words before its budget ends. */
const VERIFY_PART = 1 / 6;
const SETTLE_PART = 2 / 3;

/** How a settlement ends. */
const OUTCOMES = ['settled', 'unsettled', 'unknown'];
/** Of payments: alerts see the first event only beside a zero before it. */
const initial = [...OUTCOMES, 'refused', 'unavailable', 'limited', 'released'].map((outcome) => ({ outcome }));

const attempts = new Attempts({
  ...{ path: 'rateLimit.x402Exact', what: 'signatures', max: 120, name: 'x402-exact' },
  refusal: () => new Refusal(401, 'Too many x402 verification attempts — slow down'),
});

const remembered = new StateKey<MemoryArea>('x402-exact payments', { lasting: true });
const recorded = new StateKey<MemoryArea>('x402-exact payment records', { lasting: true });

/** One auth object of this type. */
interface Method {
  readonly terms: Terms;
  readonly offers: readonly PaymentRequirements[];
  readonly facilitators: Facilitators;
}

/** What a request has come with: a payment for one of its endpoint's methods, or what is wrong with it. */
type Claim = { readonly payment: Payment; readonly method: AuthMethod } | { readonly refusal: Refusal };

const claims = new ContextKey<Claim>('x402-exact claim');
/** The payment that a request has been let in for. */
const purchases = new ContextKey<Purchase>('x402-exact purchase');
/** Milliseconds of the budget that it took to be let in. */
const spent = new ContextKey<number>('x402-exact time');

function isPaid({ auth }: Pick<Endpoint, 'auth'>): boolean {
  return auth.some(({ type }) => type === TYPE);
}

/** Standard x402, version 2, scheme `exact` on EVM: verified before the upstream is asked, settled once the answer is signed. */
export const authX402Exact = definePlugin({
  name: NAME,
  budget: BUDGET_MS,
  auth: { [TYPE]: TermsSchema },
  keys: attempts.keys,
  // The public client libraries send the second one by mistake: without leave a browser would not send the request.
  credentials: ['PAYMENT-SIGNATURE', 'Access-Control-Expose-Headers'],
  exposes: ['PAYMENT-REQUIRED', 'PAYMENT-RESPONSE'],
  isAnnounced: (endpoints) => endpoints.some(isPaid),
  requiresSharedState: { auth: [TYPE] },
  check: checkAllTerms,
  openapi: ({ endpoints }) => (endpoints.some(isPaid) ? openApiPart : {}),
  setup(services) {
    return services.endpoints.some(isPaid) ? behaviour(services) : {};
  },
});

/** Finds out which of its endpoint's methods a request pays for, if any. */
function claimIn(text: string, { endpoint }: Exchange, { offer, methodOf, core, now }: Means): Claim {
  const methods = endpoint.auth.filter(({ type }) => type === TYPE);
  try {
    const offers = methods.flatMap((method) => methodOf(method).offers);
    const payment = matchPayment(decodePayment(text, core), offers, now());
    const method = methods.find((one) => methodOf(one).offers.includes(payment.requirements));
    if (method === undefined) throw new Error('what was matched is offered');
    return { payment, method };
  } catch (error) {
    if (error instanceof PaymentFault) return { refusal: offer(endpoint).refusal(error.message) };
    throw error;
  }
}

/** What every request is looked at with. */
interface Means {
  readonly core: Core;
  readonly now: () => number;
  methodOf(method: AuthMethod): Method;
  offer(endpoint: Endpoint): Offer;
}

/** Tells operators of a facilitator that does not do what they count on. It may be away: that is no reason not to start. */
async function inspect(facilitator: Facilitator, { offers }: Method, { log }: Services, isOver: () => boolean) {
  const { origin } = facilitator;
  try {
    const networks = new Set(await facilitator.networks());
    for (const network of new Set(offers.map((offer) => offer.network)))
      if (!networks.has(network) && !networks.has('eip155:*'))
        log.warn(`the facilitator at ${origin} does not say that it settles exact payments on ${network}`);
  } catch (error) {
    if (isOver()) return;
    const reason = error instanceof Error ? error.message : String(error);
    log.warn(`the facilitator at ${origin} could not be asked what it supports`, { reason });
  }
}

function meansOf({ endpoints, now, config, describe, log }: Services, core: Core, budget: number): Means {
  const document = discoveryKey.in(config) === false ? undefined : describe().document;
  const methodOf = perMethod(endpoints, TYPE, TermsSchema, (terms): Method => {
    const named = facilitatorsOf(terms);
    if (named.some(({ auth }) => auth)) requireCdp();
    // Each may be asked whether a payment is good, one after the other; the settlement is one's alone.
    const timeouts = { verify: (budget * VERIFY_PART) / named.length, settle: budget * SETTLE_PART };
    const all = named.map((one) => new Facilitator(core, one, timeouts));
    return { terms, offers: requirementsOf(terms), facilitators: new Facilitators(all, log) };
  });
  const offer = perEndpoint(endpoints, (endpoint) => {
    const methods = endpoint.auth.filter(({ type }) => type === TYPE);
    const terms = methods.map((method) => methodOf(method).terms);
    return new Offer(endpoint, terms, config, document === undefined ? [] : bazaarExtensions(document, endpoint));
  });
  return { core, now, methodOf, offer };
}

/** All that can be sold. */
function salesOf(endpoints: readonly Endpoint[], { methodOf }: Means): Sale[] {
  return endpoints.flatMap(({ auth, api, name }) => {
    const offers = auth.filter(({ type }) => type === TYPE).flatMap((method) => methodOf(method).offers);
    return offers.map(({ network, asset }) => ({ api, endpoint: name, network, asset }));
  });
}

function behaviour(services: Services): Behaviour {
  const { states, stateEngine, debts, now, log, meters, endpoints } = services;
  const client = createHttpClient();
  const budget = services.budget === 'none' ? BUDGET_MS : services.budget;
  const means = meansOf(services, loadCore(boundedFetch(client)), budget);
  const help = 'Standard x402 payments, by what became of them';
  const counted = meters.counter({ name: 'x402_exact_payments_total', help, labels: ['outcome'], initial });
  const area = stateEngine?.area(TYPE) ?? states.keep(remembered, '', () => new MemoryArea({ now }));
  const settlements = meters.counter({
    name: 'x402_exact_settlements_total',
    help: 'Settlements of standard payments, by what was sold, what it was paid with, and how they ended',
    labels: ['api', 'endpoint', 'network', 'asset', 'outcome'],
    initial: salesOf(endpoints, means).flatMap((sale) => OUTCOMES.map((outcome) => ({ ...sale, outcome }))),
  });
  const holds = new Holds({ area, stateEngine, debts, log });
  const records = new PaymentRecords(services, TYPE, recorded);
  const bought = new Purchases({ holds, debts, now, log, records, counted, settlements });
  let isOver = false;
  return {
    start: () => {
      const methods = new Set(endpoints.flatMap(({ auth }) => auth.filter(({ type }) => type === TYPE)));
      for (const method of [...methods].map(means.methodOf))
        for (const one of method.facilitators.all) void inspect(one, method, services, () => isOver);
    },
    stop: () => {
      isOver = true;
      return client.close();
    },
    operations: operationsOn({ payments: holds.payments, records, log, now }, client),
    hooks: {
      authenticate: { [TYPE]: authenticator(means, bought, attempts.in(services)) },
      answer: (_, exchange) => {
        if (purchases.get(exchange)?.isReleased) throw givenBack();
      },
      approve: async (_, exchange, { signal }) => {
        const purchase = purchases.get(exchange);
        if (purchase === undefined) return;
        const latest = performance.now() + budget * (1 - SETTLE_PART) - (spent.get(exchange) ?? 0);
        await bought.settle(purchase, exchange, () => signal.aborted || performance.now() > latest);
      },
      concluded: (outcome, exchange) => {
        const purchase = purchases.get(exchange);
        if (purchase !== undefined) return outcome.kind === 'signed' ? undefined : bought.release(purchase);
        const refused = refusedAs(exchange);
        if (refused !== undefined) counted({ outcome: refused }, 1);
        return undefined;
      },
    },
  };
}

function authenticator(means: Means, bought: Purchases, draw: (exchange: Exchange) => Promise<void>) {
  const buy = async (method: AuthMethod, claim: Claim, exchange: Exchange, call: CallContext): Promise<void> => {
    if ('refusal' in claim) throw claim.refusal;
    const offer = means.offer(exchange.endpoint);
    // Another method of the endpoint has its turn.
    if (claim.method !== method) throw offer.refusal('invalid_payment_requirements');
    const { facilitators } = means.methodOf(method);
    try {
      const purchase = await bought.hold(claim.payment, facilitators, offer, () => call.signal.aborted);
      purchases.set(exchange, purchase);
      paidBy.set(exchange, factsOf(claim.payment));
    } catch (error) {
      // What a later method has to say would hide it.
      if (isRefusal(error)) claims.set(exchange, { refusal: error });
      throw error;
    }
  };
  return async (method: AuthMethod, exchange: Exchange, call: CallContext): Promise<true> => {
    const began = performance.now();
    const text = exchange.headers[HEADER];
    if (text === undefined)
      throw means.offer(exchange.endpoint).refusal('PAYMENT-SIGNATURE header is required', { failure: false });
    await draw(exchange);
    const claim = claims.get(exchange) ?? claimIn(text, exchange, means);
    claims.set(exchange, claim);
    await buy(method, claim, exchange, call);
    spent.set(exchange, performance.now() - began);
    return true;
  };
}

/** How a request ended whose payment was not taken; nothing for one that came without. */
function refusedAs(exchange: Exchange): string | undefined {
  const take = attempts.drawn(exchange);
  if (take === undefined) return undefined;
  if (!take.allowed) return 'limited';
  const claim = claims.get(exchange);
  return claim !== undefined && 'refusal' in claim && claim.refusal.fault ? 'unavailable' : 'refused';
}
