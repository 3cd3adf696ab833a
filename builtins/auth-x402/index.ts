import { createJsonRpc, type JsonRpc, JsonRpcFailure } from '../../lib/http/json-rpc.ts';
import { httpTarget } from '../../plugins-sdk/config.ts';
import {
  type AuthMethod,
  type Behaviour,
  type CallContext,
  ContextKey,
  createHttpClient,
  definePlugin,
  type Exchange,
  perMethod,
  Refusal,
  type Services,
} from '../../plugins-sdk/index.ts';
import type { RequestOutcome } from '../../plugins-sdk/observe.ts';
import { attemptsOf } from '../shared/attempts.ts';
import { findMined, type Mined } from '../shared/chain.ts';
import { payment as paidBy } from '../shared/payment-facts.ts';
import { givenBack, Payments, paymentKeys, ticketFor, unavailable } from '../shared/payments.ts';
import { challenge } from './challenge.ts';
import { ledgerIn } from './ledger.ts';
import { openApiPart } from './openapi.ts';
import { operationsOn } from './operations.ts';
import { checkPayment } from './payment.ts';
import { checkWindow, type PaymentProof, parseProof, signerOf } from './proof.ts';
import { lostOf, type Redeemed, Redemptions } from './redemptions.ts';
import { aboutOf, type Reports, reportsOf } from './reports.ts';
import { checkAllTerms, greatestAge, LEAST_LIFE_MS, type Terms, TermsSchema } from './terms.ts';

const NAME = 'auth-x402';
const HEADER = 'x-payment-proof';

const attempts = attemptsOf('x402-proofs', 'rateLimit.x402', 'proofs', 30);

/** Milliseconds per request for this plugin. */
const BUDGET_MS = 30_000;
/** Milliseconds that a node has for all questions about one payment. */
const LOOKUP_TIMEOUT_MS = 10_000;
/** The part of the budget for waiting for nodes: what is left lets this plugin refuse in its own words before its budget ends. */
const WAITING_PART = 0.8;

interface Accepted {
  readonly terms: Terms;
  readonly rpc: JsonRpc;
}

/** Every payment that an endpoint accepts may have to be looked up, one after the other. */
function lookUpTimeout({ endpoint }: Exchange, budget: number): number {
  const lookUps = endpoint.auth.filter(({ type }) => type === 'x402').length;
  return Math.min(LOOKUP_TIMEOUT_MS, (budget * WAITING_PART) / lookUps);
}

/** @throws Refusal 401 */
async function lookUp(
  { terms, rpc }: Accepted,
  { txHash }: PaymentProof,
  timeout: number,
  call: CallContext,
): Promise<Mined> {
  try {
    const mined = await findMined(rpc, terms, txHash, { timeout, signal: call.signal });
    if (mined === undefined) throw new Refusal(401, 'Payment not found');
    return mined;
  } catch (error) {
    if (!(error instanceof JsonRpcFailure)) throw error;
    // Whoever sends a transaction decides how long its receipt is.
    throw unavailable(error.message, undefined, error.kind !== 'too-large');
  }
}

/** Stages before the upstream is asked, and the one at which it is. */
const UNTIL_THE_CALL = new Set(['validate', 'vary', 'prepare', 'present', 'answer', 'onBeforeApiCall', 'callApi']);

/** Whether the request was refused for want of room before the upstream was asked, so that nothing was done for the payment. */
function wantsRoom({ status, stage = '', upstreamStatus }: Refusal): boolean {
  return status === 503 && upstreamStatus === undefined && UNTIL_THE_CALL.has(stage);
}

const keys = paymentKeys('x402');

/** The payment that a request has been let in for. */
interface Bought extends Redeemed {
  /** What became of it. It is spent with the first answer, and buys all of its request. */
  fate: 'held' | 'spent' | 'returned';
  /** To be called once its payer has an answer, or the payment back. */
  answered(): void;
}
const redeemed = new ContextKey<Bought>('x402Payment');

/** Payment on chain: without a proof the answer is a 402 challenge that says what to pay; each payment counts once. */
export const authX402 = definePlugin({
  name: NAME,
  budget: BUDGET_MS,
  auth: { x402: TermsSchema },
  keys: attempts.keys,
  credentials: ['X-Payment-Proof'],
  requiresSharedState: { auth: ['x402'] },
  check: checkAllTerms,
  openapi: () => openApiPart,
  setup: (services) =>
    services.endpoints.some(({ auth }) => auth.some(({ type }) => type === 'x402'))
      ? behaviour(services, Payments.in(services, keys))
      : {},
});

/** A mode may go on after a refusal. */
function refuseUnpaid(_: unknown, exchange: Exchange): undefined {
  if (redeemed.get(exchange)?.fate === 'returned') throw givenBack();
}

/** Gives the payment of a refused request back, and counts what became of its proof. */
function settlement(redemptions: Redemptions, reports: Reports, background: Services['background']) {
  const refund = async (payment: Bought, refusal: Refusal, exchange: Exchange): Promise<void> => {
    const given = await redemptions.refund(payment, !wantsRoom(refusal));
    reports.tell(payment.ticket.about, exchange.endpoint, given ? 'refunded' : 'kept');
  };
  return (outcome: RequestOutcome, exchange: Exchange): Promise<void> | undefined => {
    const payment = redeemed.get(exchange);
    // A request is counted once, however many payments its endpoint accepts.
    if (payment === undefined) {
      const ended = attempts.refusedAs(exchange, outcome);
      if (ended !== undefined) reports.counts.add(ended);
    }
    // A client that leaves gets nothing back: else it could read an answer up to its last byte, and leave for free.
    if (payment?.fate !== 'held') return undefined;
    payment.fate = outcome.kind === 'refused' ? 'returned' : 'spent';
    if (outcome.kind === 'refused') return refund(payment, outcome.refusal, exchange).finally(payment.answered);
    payment.answered();
    // The answer does not wait for what only operators read.
    background(redemptions.answered(payment));
    return undefined;
  };
}

/** Redeems payments, and remembers each for as long as any endpoint here would take it. */
function redemptionsFor(
  { endpoints, now, stateEngine }: Services,
  payments: Payments,
  termsOf: (method: AuthMethod) => Terms,
): Redemptions {
  const methods = endpoints.flatMap(({ auth }) => auth.filter(({ type }) => type === 'x402'));
  const life = Math.max(LEAST_LIFE_MS, ...methods.map((method) => greatestAge(termsOf(method))));
  return new Redemptions({ payments, ledger: ledgerIn(payments.area, life, now), stateEngine, now });
}

function behaviour(services: Services, payments: Payments): Behaviour {
  const { node, now, endpoints, debts } = services;
  const budget = services.budget === 'none' ? BUDGET_MS : services.budget;
  const attempt = attempts.in(services);
  const client = createHttpClient();
  const accepted = perMethod(endpoints, 'x402', TermsSchema, (terms): Accepted => {
    return { terms, rpc: createJsonRpc(client, httpTarget(terms.rpc)) };
  });
  const termsOf = (method: AuthMethod) => accepted(method).terms;
  const redemptions = redemptionsFor(services, payments, termsOf);
  const reports = reportsOf(services, termsOf);
  const redeem = async (method: AuthMethod, proof: PaymentProof, exchange: Exchange, call: CallContext) => {
    const signer = signerOf(proof, node, exchange.endpoint.id);
    // Too late to be heard: the budget ended or the client left.
    const isOver = () => call.signal.aborted;
    const verify = async () => {
      const mined = await lookUp(accepted(method), proof, lookUpTimeout(exchange, budget), call);
      checkPayment(mined, accepted(method).terms, signer, now());
      if (isOver()) throw unavailable('the request ended before the payment was verified');
      return mined;
    };
    const facts = { transaction: proof.txHash, payer: signer };
    // Only the payer can confirm a payment. With the signer in the name, others can't even hold it against him.
    const ticket = ticketFor(`${proof.txHash}:${signer}`, aboutOf(facts, exchange, termsOf(method), now()));
    const bought = await redemptions.redeem({ ticket, verify, isOver });
    redeemed.set(exchange, { ...bought, fate: 'held', answered: debts.owe(lostOf(ticket)) });
    paidBy.set(exchange, { network: ticket.about.network, ...facts });
    reports.tell(ticket.about, exchange.endpoint, 'redeemed');
  };
  const authenticate = async (method: AuthMethod, exchange: Exchange, call: CallContext): Promise<true> => {
    const text = exchange.headers[HEADER];
    const challenged = (invalid?: string) => challenge(termsOf(method), exchange, node, now(), invalid);
    if (text === undefined) {
      redemptions.look();
      throw challenged();
    }
    await attempt(exchange, async () => {
      const proof = parseProof(text, challenged);
      checkWindow(proof, now());
      await redeem(method, proof, exchange, call);
    });
    return true;
  };
  const concluded = settlement(redemptions, reports, services.background);
  const hooks = { authenticate: { x402: authenticate }, answer: refuseUnpaid, approve: refuseUnpaid, concluded };
  const operations = operationsOn(payments, services.log);
  return { start: () => redemptions.start(), stop: () => client.close(), hooks, operations };
}
