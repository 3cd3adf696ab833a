import { createJsonRpc, JsonRpcFailure } from '../../lib/http/json-rpc.ts';
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
import { payment as paidBy } from '../shared/payment-mark.ts';
import { Payments, paymentKeys, ticketFor, unavailable } from '../shared/payments.ts';
import { challenge } from './challenge.ts';
import { ledgerIn } from './ledger.ts';
import { openApiPart } from './openapi.ts';
import { operationsOn } from './operations.ts';
import { checkPayment } from './payment.ts';
import { checkWindow, type PaymentProof, parseProof, signerOf } from './proof.ts';
import { lostOf, type Redeemed, Redemptions } from './redemptions.ts';
import { aboutOf, type Reports, reportsOf } from './reports.ts';
import { checkAllTerms, greatestAge, isSold, LEAST_LIFE_MS, type Terms, TermsSchema } from './terms.ts';

const NAME = 'auth-x402';
const HEADER = 'x-payment-proof';

const attempts = attemptsOf('x402-proofs', 'rateLimit.x402', 'Payment proofs', 30);

/** The plugin's default budget, in milliseconds per request. */
const BUDGET_MS = 30_000;
/** Timeout of all RPC calls about one payment, in milliseconds. */
const LOOKUP_TIMEOUT_MS = 10_000;
/** The share of the budget for RPC calls. The rest lets this plugin send its own refusal before the budget ends. */
const WAITING_PART = 0.8;

/** Returns the milliseconds for one payment. A request may need a lookup for each payment that its endpoint accepts, in turn. */
function lookUpTimeout({ endpoint }: Exchange, budget: number): number {
  const lookUps = endpoint.auth.filter(({ type }) => type === 'x402').length;
  return Math.min(LOOKUP_TIMEOUT_MS, (budget * WAITING_PART) / lookUps);
}

/** Finds the transaction of a proof, as {@link findMined} does. @throws Refusal 401 if it is not found, or if the node fails. */
async function lookUp(...asked: Parameters<typeof findMined>): Promise<Mined> {
  try {
    const mined = await findMined(...asked);
    if (mined === undefined) throw new Refusal(401, 'Payment not found');
    return mined;
  } catch (error) {
    if (!(error instanceof JsonRpcFailure)) throw error;
    // The payer decides how long a receipt is: one that is too large is no fault of the node.
    throw unavailable(error.message, undefined, error.kind !== 'too-large');
  }
}

/** The stages up to the upstream call, this one included. */
const UNTIL_THE_CALL = new Set(['validate', 'vary', 'prepare', 'present', 'answer', 'onBeforeApiCall', 'callApi']);

/** Whether the service was full (503) and the upstream was not called, so that the payment has caused no work. */
function wasFull({ status, stage = '', upstreamStatus }: Refusal): boolean {
  return status === 503 && upstreamStatus === undefined && UNTIL_THE_CALL.has(stage);
}

const keys = paymentKeys('x402');

/** The payment that admitted a request. */
interface Bought extends Redeemed {
  /** Ends the debt to the payer. Called once the payer has an answer, or has the payment back. */
  answered(): void;
}
const redeemed = new ContextKey<Bought>('x402Payment');

/** Payments on chain. A request without a proof gets a 402 challenge that says what to pay; each payment counts once. */
export const authX402 = definePlugin({
  name: NAME,
  budget: BUDGET_MS,
  auth: { x402: TermsSchema },
  keys: attempts.keys,
  credentials: ['X-Payment-Proof'],
  requiresSharedState: { auth: ['x402'] },
  check: checkAllTerms,
  openapi: () => openApiPart,
  setup: (services) => (services.endpoints.some(isSold) ? behaviour(services, Payments.in(services, keys)) : {}),
});

/** Makes the `concluded` function: gives the payment of a refused request back, and counts the outcome of its proof. */
function settlement(redemptions: Redemptions, reports: Reports, background: Services['background']) {
  const refund = async (payment: Bought, refusal: Refusal, exchange: Exchange): Promise<void> => {
    const given = await redemptions.refund(payment, !wasFull(refusal));
    reports.tell(payment.ticket.about, exchange.endpoint, given ? 'refunded' : 'kept');
  };
  return (outcome: RequestOutcome, exchange: Exchange): Promise<void> | undefined => {
    const payment = redeemed.get(exchange);
    if (payment === undefined) {
      // Once per request, however many payments its endpoint accepts.
      const ended = attempts.refusedAs(exchange, outcome);
      if (ended !== undefined) reports.counts.add(ended);
      return undefined;
    }
    // A client that leaves gets no refund: else it could have the upstream work for free.
    if (outcome.kind === 'refused') return refund(payment, outcome.refusal, exchange).finally(payment.answered);
    payment.answered();
    // In the background: this mark is for operators only, so the response need not wait for it.
    background(redemptions.spent(payment, outcome.kind === 'signed' ? 'answered' : 'left'));
    return undefined;
  };
}

/** Makes the redemptions of a service. They remember each payment as long as any of its endpoints would accept it. */
function redemptionsFor(
  { endpoints, now }: Services,
  payments: Payments,
  termsOf: (method: AuthMethod) => Terms,
): Redemptions {
  const methods = endpoints.flatMap(({ auth }) => auth.filter(({ type }) => type === 'x402'));
  const life = Math.max(LEAST_LIFE_MS, ...methods.map((method) => greatestAge(termsOf(method))));
  return new Redemptions({ payments, ledger: ledgerIn(payments.area, life, now), now });
}

function behaviour(services: Services, payments: Payments): Behaviour {
  const { node, now, endpoints, debts } = services;
  const budget = services.budget === 'none' ? BUDGET_MS : services.budget;
  const attempt = attempts.in(services);
  const client = createHttpClient();
  const termsOf = perMethod(endpoints, 'x402', TermsSchema, (terms) => terms);
  const rpcOf = perMethod(endpoints, 'x402', TermsSchema, ({ rpc }) => createJsonRpc(client, httpTarget(rpc)));
  const redemptions = redemptionsFor(services, payments, termsOf);
  const reports = reportsOf(services, termsOf);
  const redeem = async (method: AuthMethod, proof: PaymentProof, exchange: Exchange, call: CallContext) => {
    const signer = signerOf(proof, node, exchange.endpoint.id);
    // The budget has ended or the client has left, so nobody gets the result.
    const isOver = () => call.signal.aborted;
    const verify = async () => {
      const limits = { timeout: lookUpTimeout(exchange, budget), signal: call.signal };
      const mined = await lookUp(rpcOf(method), termsOf(method), proof.txHash, limits);
      checkPayment(mined, termsOf(method), signer, now());
      if (isOver()) throw unavailable('the request ended before the payment was verified');
      return mined;
    };
    const facts = { transaction: proof.txHash, payer: signer };
    // The name has the signer in it: a proof that the payer did not sign cannot even hold the payment, and so block the payer.
    const ticket = ticketFor(`${proof.txHash}:${signer}`, aboutOf(facts, exchange, termsOf(method), now()));
    const bought = await redemptions.redeem(ticket, verify, isOver);
    redeemed.set(exchange, { ...bought, answered: debts.owe(lostOf(ticket)) });
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
  const hooks = { authenticate: { x402: authenticate }, concluded };
  const operations = operationsOn(payments, services.log);
  return { start: () => redemptions.start(), stop: () => client.close(), hooks, operations };
}
