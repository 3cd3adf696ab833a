import {
  type AuthMethod,
  type Behaviour,
  type Call,
  type ClientBuckets,
  ContextKey,
  clientIp,
  clientKey,
  configKey,
  createHttpClient,
  type Definition,
  definePlugin,
  type Exchange,
  type Measure,
  millisecondsSchema,
  type Outcome,
  perMethod,
  Refusal,
  type Services,
  StateKey,
  type States,
  sentRequest,
  TokenBuckets,
  type TokenTake,
  Type,
} from '../../plugins-sdk/index.ts';
import { findMined, type Mined } from './chain.ts';
import { PaymentMemory } from './memory.ts';
import { described } from './openapi.ts';
import { checkPayment } from './payment.ts';
import { checkWindow, type PaymentProof, parseProof, signerOf } from './proof.ts';
import { type PaymentStore, RedeemedPayments } from './redeemed.ts';
import { Redemptions, unavailable } from './redemptions.ts';
import { createRpc, type Rpc, RpcFailure } from './rpc.ts';
import { checkAllTerms, expiryOf, greatestAge, type Terms, TermsSchema } from './terms.ts';

const NAME = 'auth-x402';
const HEADER = 'x-payment-proof';

const bucketWindow = configKey(
  'server',
  'rateLimit.x402.window',
  Type.Optional(millisecondsSchema('Milliseconds in which max proofs are allowed; default 60000')),
);
const bucketMax = configKey(
  'server',
  'rateLimit.x402.max',
  Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1_000_000_000, description: 'Payment proofs per window; default 30' }),
  ),
);
/** Read only: the budget that the operator gives this plugin. */
const pluginEntries = configKey(
  'settings',
  'plugins',
  Type.Optional(Type.Array(Type.Object({ source: Type.String(), timeout: Type.Optional(Type.Number()) }))),
);

/** Milliseconds per request for this plugin. */
const BUDGET = 30_000;
/** Milliseconds that a node has for all questions about one payment. */
const PATIENCE = 10_000;
/** The part of the budget for waiting for nodes: what is left lets this plugin refuse in its own words before its budget ends. */
const WAITING_PART = 0.8;

function challenge(terms: Terms, exchange: Exchange, node: string, now: number): Refusal {
  const { amount, token, network, recipient } = terms;
  const body = {
    node,
    endpointId: exchange.endpoint.id,
    amount,
    token,
    network,
    recipient,
    expiresAt: Math.floor((now + expiryOf(terms)) / 1000),
  };
  return new Refusal(402, 'Payment required', { body, failure: false });
}

interface Accepted {
  readonly terms: Terms;
  readonly rpc: Rpc;
}

/** Every payment that an endpoint accepts may have to be looked up, one after the other. */
function patience({ endpoint }: Exchange, budget: number): number {
  const lookUps = endpoint.auth.filter(({ type }) => type === 'x402').length;
  return Math.min(PATIENCE, (budget * WAITING_PART) / lookUps);
}

/** @throws Refusal 401 */
async function lookUp({ terms, rpc }: Accepted, { txHash }: PaymentProof, timeout: number, call: Call): Promise<Mined> {
  try {
    const mined = await findMined(rpc, terms, txHash, { timeout, signal: call.signal });
    if (mined === undefined) throw new Refusal(401, 'Payment not found');
    return mined;
  } catch (error) {
    throw error instanceof RpcFailure ? unavailable(error.message) : error;
  }
}

/** Whether the request was refused for want of room before the upstream was asked, so that nothing was done for the payment. */
function wantsRoom({ status }: Refusal, exchange: Exchange): boolean {
  return status === 503 && sentRequest.get(exchange) === undefined;
}

const remembered = new StateKey<PaymentMemory>('x402 payments', { lasting: true });
const keptBuckets = new StateKey<ClientBuckets>('x402 proof buckets');

/** What the bucket of the client's address has said: a request draws once, however many payments its endpoint accepts. */
const drawn = new ContextKey<TokenTake>('x402Draw');
/** The payment that a request has been let in for. */
const redeemed = new ContextKey<string>('x402Payment');

/** @returns what throws a refusal (401) for a client that has sent too many proofs. */
function proofLimit(config: Services['config'], states: States): (exchange: Exchange) => Promise<void> {
  const limit = { max: bucketMax.in(config) ?? 30, window: bucketWindow.in(config) ?? 60_000 };
  const buckets = states.keep(keptBuckets, JSON.stringify(limit), (): ClientBuckets => new TokenBuckets(limit));
  return async (exchange) => {
    const take = drawn.get(exchange) ?? (await buckets.take(clientKey(clientIp(exchange))));
    drawn.set(exchange, take);
    if (!take.allowed) throw new Refusal(401, 'Too many x402 verification attempts — slow down');
  };
}

/** Milliseconds per request that the operator gives this plugin. */
function budgetIn(config: Services['config']): number {
  const entry = pluginEntries.in(config)?.find(({ source }) => source === `builtin:${NAME}`);
  return entry?.timeout ?? BUDGET;
}

/** Payment on chain: without a proof the answer is a 402 challenge that says what to pay; each payment counts once. */
export const authX402 = authX402With((now) => new RedeemedPayments({ now }));

/** @param createStore makes the store of redeemed payments: in memory by default, one day shared by several processes. */
export function authX402With(createStore: (now: () => number) => PaymentStore): Definition {
  return definePlugin({
    name: NAME,
    budget: BUDGET,
    auth: { x402: TermsSchema },
    keys: [bucketWindow, bucketMax],
    credentials: ['X-Payment-Proof'],
    check: checkAllTerms,
    openapi: () => described,
    setup(services) {
      const { config, endpoints, states } = services;
      const memory = states.keep(remembered, '', () => new PaymentMemory(createStore(services.now)));
      const paid = endpoints.some(({ auth }) => auth.some(({ type }) => type === 'x402'));
      return paid ? behaviour(services, memory, { draw: proofLimit(config, states), budget: budgetIn(config) }) : {};
    },
  });
}

/** Gives the payment of a refused request back, and counts what became of its proof. */
function settlement(redemptions: Redemptions, counted: Measure<'outcome'>) {
  const refund = async (payment: string, refusal: Refusal, exchange: Exchange): Promise<void> => {
    const given = await redemptions.refund(payment, !wantsRoom(refusal, exchange), exchange.requestId);
    counted({ outcome: given ? 'refunded' : 'kept' }, 1);
  };
  return (outcome: Outcome, exchange: Exchange): Promise<void> | undefined => {
    const payment = redeemed.get(exchange);
    const take = drawn.get(exchange);
    // A request is counted once, however many payments its endpoint accepts.
    if (payment === undefined && take !== undefined) counted({ outcome: take.allowed ? 'refused' : 'limited' }, 1);
    // A client that leaves gets nothing back: else it could read an answer up to its last byte, and leave for free.
    if (payment === undefined || outcome.kind !== 'refused') return undefined;
    return refund(payment, outcome.refusal, exchange);
  };
}

interface Bounds {
  draw(exchange: Exchange): Promise<void>;
  readonly budget: number;
}

function behaviour(services: Services, memory: PaymentMemory, { draw, budget }: Bounds): Behaviour {
  const { node, now, endpoints, log, meters } = services;
  const client = createHttpClient();
  const accepted = perMethod(endpoints, 'x402', TermsSchema, (terms): Accepted => {
    return { terms, rpc: createRpc(client, terms.rpc) };
  });
  const methods = endpoints.flatMap(({ auth }) => auth.filter(({ type }) => type === 'x402'));
  const longestLife = Math.max(...methods.map((method) => greatestAge(accepted(method).terms)));
  const redemptions = new Redemptions({ memory, longestLife, now, log });
  const help = 'Proofs of payment, by what became of them';
  const counted = meters.counter({ name: 'x402_proofs_total', help, labels: ['outcome'] });
  const redeem = async (method: AuthMethod, proof: PaymentProof, exchange: Exchange, call: Call): Promise<void> => {
    const signer = signerOf(proof, node, exchange.endpoint.id);
    // Only the payer can confirm a payment. With the signer in the name, others can't even reserve it against him.
    const payment = `${proof.txHash}:${signer}`;
    await redemptions.redeem(payment, async () => {
      const mined = await lookUp(accepted(method), proof, patience(exchange, budget), call);
      checkPayment(mined, accepted(method).terms, signer, now());
      // Too late to be heard: the budget ended or the client left.
      if (call.signal.aborted) throw unavailable('the request ended before the payment was verified');
      return mined;
    });
    redeemed.set(exchange, payment);
    counted({ outcome: 'redeemed' }, 1);
  };
  const authenticate = async (method: AuthMethod, exchange: Exchange, call: Call): Promise<true> => {
    const text = exchange.headers[HEADER];
    if (text === undefined) throw challenge(accepted(method).terms, exchange, node, now());
    await draw(exchange);
    const proof = parseProof(text);
    checkWindow(proof, now());
    await redeem(method, proof, exchange, call);
    return true;
  };
  const hooks = { authenticate: { x402: authenticate }, settle: settlement(redemptions, counted) };
  return { stop: () => client.close(), hooks };
}
