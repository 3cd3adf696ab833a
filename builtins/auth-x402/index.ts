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
  type HttpClient,
  perMethod,
  Refusal,
  type Services,
} from '../../plugins-sdk/index.ts';
import type { RequestOutcome } from '../../plugins-sdk/observe.ts';
import { attemptsOf } from '../shared/attempts.ts';
import { findMined, type Mined } from '../shared/chain.ts';
import { payment as paidBy, ticketFor } from '../shared/payment-mark.ts';
import { paymentReports } from '../shared/payment-reports.ts';
import { Payments, paymentKeys, unavailable } from '../shared/payments.ts';
import { ledgerIn } from './ledger.ts';
import { openApiPart } from './openapi.ts';
import { operationsOn } from './operations.ts';
import { challenge, checkPayment } from './payment.ts';
import { checkWindow, type PaymentProof, parseProof, signerOf } from './proof.ts';
import { type Redeemed, Redemptions } from './redemptions.ts';
import { checkAllTerms, greatestAge, LEAST_LIFE_MS, TermsSchema, termsIn, tokenOf } from './terms.ts';

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
const redeemed = new ContextKey<Redeemed>('x402Payment');

/** Payments on chain. A request without a proof gets a 402 challenge that says what to pay; each payment counts once. */
export const authX402 = definePlugin({
  name: NAME,
  budget: BUDGET_MS,
  auth: { x402: TermsSchema },
  keys: attempts.keys,
  credentials: ['X-Payment-Proof'],
  requiresSharedState: { auth: ['x402'] },
  check: (context) => [...checkAllTerms(context)],
  openapi: () => openApiPart,
  setup: (services) => (services.endpoints.flatMap(termsIn).length > 0 ? behaviour(services) : {}),
});

function behaviour(services: Services): Behaviour {
  const { endpoints, now, log } = services;
  const payments = Payments.in(services, keys);
  // Each payment is remembered as long as any endpoint would accept it.
  const life = Math.max(LEAST_LIFE_MS, ...endpoints.flatMap(termsIn).map(greatestAge));
  const ledger = ledgerIn(payments.area, life, now);
  const redemptions = new Redemptions({ ...services, payments, ledger });
  const reports = reportsOf(services);
  const client = createHttpClient();
  return {
    start: () => redemptions.start(),
    stop: () => client.close(),
    hooks: {
      authenticate: { x402: authenticator(services, client, redemptions, reports) },
      concluded: settlement(redemptions, reports, services.background),
    },
    operations: operationsOn(payments, log),
  };
}

/** Counts and logs what becomes of payments. */
function reportsOf(services: Services) {
  return paymentReports(services, {
    all: ['x402_proofs_total', 'Proofs of payment, by what became of them'],
    sold: [
      'x402_payments_total',
      'Payments on chain that were redeemed, by what was sold and what it was paid with; and those of them that were given back',
    ],
    lines: {
      redeemed: ['info', 'payment redeemed'],
      refunded: ['info', 'payment given back'],
      kept: ['warn', 'a payment was not given back once more'],
    },
    others: ['refused', 'unavailable', 'limited'],
    tokensOf: (endpoint) => termsIn(endpoint).map(tokenOf),
  });
}
type Reports = ReturnType<typeof reportsOf>;

/** Makes the function that admits a request whose proof redeems a payment. */
function authenticator(services: Services, client: HttpClient, redemptions: Redemptions, reports: Reports) {
  const { node, now, endpoints } = services;
  const budget = services.budget === 'none' ? BUDGET_MS : services.budget;
  const attempt = attempts.in(services);
  const termsOf = perMethod(endpoints, 'x402', TermsSchema, (terms) => terms);
  const rpcOf = perMethod(endpoints, 'x402', TermsSchema, ({ rpc }) => createJsonRpc(client, httpTarget(rpc)));

  const redeem = async (method: AuthMethod, proof: PaymentProof, exchange: Exchange, { signal }: CallContext) => {
    const terms = termsOf(method);
    const payer = signerOf(proof, node, exchange.endpoint.id);
    // The budget has ended or the client has left, so nobody gets the result.
    const isOver = () => signal.aborted;
    const verify = async () => {
      const timeout = lookUpTimeout(exchange, budget);
      const mined = await lookUp(rpcOf(method), terms, proof.txHash, { timeout, signal });
      checkPayment(mined, terms, payer, now());
      if (isOver()) throw unavailable('the request ended before the payment was verified');
      return mined;
    };
    const { network, asset } = tokenOf(terms);
    const paid = { network, payer, transaction: proof.txHash };
    // The name has the signer in it: a proof that the payer did not sign cannot even hold the payment, and so block the payer.
    const name = `${proof.txHash}:${payer}`;
    const ticket = ticketFor(name, exchange, { ...paid, asset, amount: terms.amount, since: now() });
    redeemed.set(exchange, await redemptions.redeem(ticket, verify, isOver));
    paidBy.set(exchange, paid);
    reports.tell(ticket.about, exchange.endpoint, 'redeemed');
  };

  return async (method: AuthMethod, exchange: Exchange, call: CallContext): Promise<true> => {
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
}

/** Makes the `concluded` function: gives the payment of a refused request back, and counts the outcome of its proof. */
function settlement(redemptions: Redemptions, reports: Reports, background: Services['background']) {
  const refund = async (payment: Redeemed, refusal: Refusal, { endpoint }: Exchange): Promise<void> => {
    const given = await redemptions.refund(payment, !wasFull(refusal));
    reports.tell(payment.ticket.about, endpoint, given ? 'refunded' : 'kept');
  };
  return (outcome: RequestOutcome, exchange: Exchange): Promise<void> | undefined => {
    const payment = redeemed.get(exchange);
    if (payment === undefined) {
      // Once per request, however many payments its endpoint accepts.
      const ended = attempts.refusedAs(exchange, outcome);
      if (ended !== undefined) reports.count(ended);
      return undefined;
    }
    // A client that leaves gets no refund: else it could have the upstream work for free.
    if (outcome.kind === 'refused') return refund(payment, outcome.refusal, exchange);
    // In the background: this mark is for operators only, so the response need not wait for it.
    background(redemptions.spent(payment, outcome.kind === 'signed' ? 'answered' : 'left'));
    return undefined;
  };
}
