/**
 * Asks facilitators to verify and to settle payments, and what they support. Their answers are bounded and checked. When one is
 * down, the next in the operator's order is asked.
 */
import type { SettleResponse } from '@x402/core/types';
import { Check } from 'typebox/value';
import { isBytes32, isSameHex } from '../../lib/eth/hex.ts';
import { jsonIn } from '../../lib/json/value.ts';
import {
  type AuthMethod,
  type HttpClient,
  isRefusal,
  type Log,
  Refusal,
  RequestFailure,
  Type,
} from '../../plugins-sdk/index.ts';
import { memberAt } from '../shared/described.ts';
import { UNAVAILABLE } from '../shared/payments.ts';
import { cdpHeaders, cdpKey } from './cdp.ts';
import { refusal } from './offer.ts';
import type { Payment } from './payload.ts';
import { type FacilitatorTerms, facilitatorsIn, type Terms } from './terms.ts';

/** The facilitator gave no usable answer. The reason may be logged: it has neither the URL's path nor the facilitator's prose. */
export class FacilitatorFailure extends Refusal {
  /** Whether the request certainly did not reach the facilitator. */
  readonly isUnsent: boolean;

  constructor(question: string, why: string, isUnsent = false) {
    super(401, UNAVAILABLE, { reason: `${question}: ${why}`, fault: true });
    this.isUnsent = isUnsent;
  }
}

const MAX_ANSWER_BYTES = 256 * 1024;

/** The protocol's code for an authorisation that has been used. */
export const USED = 'invalid_exact_evm_nonce_already_used';

/** The shape of an error code that clients may see. */
const CODE = /^\w{1,100}$/;

/**
 * Codes of checks before anything is sent to the chain: the money was certainly not taken. After any other code a transaction
 * may be under way: facilitators report a failure when they have waited too long, or have lost track of a pending transaction.
 */
const NOT_SENT = /^(?:insufficient|invalid|unsupported)_(?!\w*trans(?!\w*simulation))\w+$/;

/** Statuses about the facilitator's own state or our credentials, not about the payment. */
const NOT_ABOUT_PAYMENT: ReadonlySet<number> = new Set([401, 403, 404, 408, 429]);

const maybe = Type.Optional(Type.Union([Type.String(), Type.Null()]));
const paid = { payer: maybe, transaction: maybe, network: maybe, amount: maybe };
const kind = Type.Object({ x402Version: Type.Number(), scheme: Type.String(), network: Type.String() });
const shapes = {
  verify: Type.Object({ isValid: Type.Boolean(), invalidReason: maybe, payer: maybe }),
  settle: Type.Object({ success: Type.Boolean(), errorReason: maybe, ...paid }),
  supported: Type.Object({ kinds: Type.Array(kind) }),
};
type Question = keyof typeof shapes;

export type Facilitator = ReturnType<typeof facilitatorAt>;

/** Makes the client of one facilitator. @param timeouts milliseconds for each whole request. */
function facilitatorAt(client: HttpClient, terms: FacilitatorTerms, timeouts: Readonly<Record<Question, number>>) {
  const { url: base, headers: own, auth } = terms;
  const key = auth && cdpKey(auth.keySecret);
  /** @throws FacilitatorFailure */
  const send = async (question: Question, payment?: Payment) => {
    const method = payment === undefined ? 'GET' : 'POST';
    const url = `${base.replace(/\/+$/, '')}/${question}`;
    const timeout = timeouts[question];
    const token = auth && key && cdpHeaders(auth.keyId, key, method, url);
    const headers = { 'Content-Type': 'application/json', ...own, ...token };
    const body = payment && JSON.stringify(askedOf(payment));
    try {
      return await client.request({ method, url, headers, body, timeout, maxBytes: MAX_ANSWER_BYTES });
    } catch (error) {
      if (!(error instanceof RequestFailure)) throw error;
      const why = error.kind === 'timeout' ? `no complete answer within ${timeout} ms` : error.message;
      throw new FacilitatorFailure(question, why, error.phase !== 'answer');
    }
  };
  // `failedAt`: when it failed last, as `performance.now()` counts.
  return { origin: new URL(base).origin, failedAt: Number.NEGATIVE_INFINITY, send };
}

/** Makes the request's body from what was checked or offered, without anything else that a client may have added. */
function askedOf({ requirements, signature, authorization, offer }: Payment): object {
  const { resource, extensions: { bazaar } = {} } = offer;
  const extensions = bazaar === undefined ? {} : { extensions: { bazaar } };
  const payload = { signature, authorization };
  const paymentPayload = { x402Version: 2, resource, accepted: requirements, payload, ...extensions };
  return { x402Version: 2, paymentPayload, paymentRequirements: requirements };
}

/** Asks one question. @returns the answer; with an error status, only one that rejects the payment. @throws FacilitatorFailure */
async function ask<Q extends Question>(by: Facilitator, question: Q, payment?: Payment) {
  const { status, body } = await by.send(question, payment);
  const said = jsonIn(body.toString());
  const isAboutPayment = status >= 400 && status < 500 && !NOT_ABOUT_PAYMENT.has(status);
  const isNo = isAboutPayment && memberAt(said, question === 'verify' ? 'isValid' : 'success') === false;
  if (!isNo && (status < 200 || status >= 300)) throw new FacilitatorFailure(question, `HTTP status ${status}`);
  if (Check(shapes[question], said)) return said;
  throw new FacilitatorFailure(question, `the answer ${said === undefined ? 'is no JSON' : 'has a wrong shape'}`);
}

/** Has one facilitator verify a payment. @throws Refusal 402 if it is invalid, FacilitatorFailure without a verdict. */
async function verify(by: Facilitator, payment: Payment): Promise<Facilitator> {
  const said = await ask(by, 'verify', payment);
  if (!said.isValid) throw refusal(payment.offer, codeOf(said.invalidReason, 'unexpected_verify_error'));
  if (said.payer && !isSameHex(said.payer, payment.authorization.from))
    throw new FacilitatorFailure('verify', 'the answer is about another payer');
  return by;
}

/**
 * Has one facilitator settle a payment.
 * @returns the outcome, in the protocol's form.
 * @throws FacilitatorFailure if it is unknown whether the payment was settled.
 */
async function settle(by: Facilitator, payment: Payment): Promise<SettleResponse> {
  const said = await ask(by, 'settle', payment);
  const { from: payer } = payment.authorization;
  const { network, amount } = payment.requirements;
  const transaction = isBytes32(said.transaction) ? said.transaction : '';
  const unusable = (why: string) => new FacilitatorFailure('settle', why);
  if (!said.success) {
    const errorReason = codeOf(said.errorReason, 'unexpected_settle_error');
    if (errorReason === 'settlement_pending') throw unusable(`pending as ${transaction}`);
    // The authorisation was unused when it was verified: whatever has used it since may have made this payment.
    if (errorReason === USED) throw unusable('the authorisation is used already');
    if (transaction !== '' || !NOT_SENT.test(errorReason)) throw unusable(`${errorReason} ${transaction}`.trimEnd());
    return { success: false, transaction: '', network, payer, errorReason };
  }
  if (transaction === '') throw unusable('the answer names no transaction');
  if (said.network !== network) throw unusable('the answer is about another network');
  if (said.payer && !isSameHex(said.payer, payer)) throw unusable('the answer is about another payer');
  if (said.amount && said.amount !== amount) throw unusable('the answer is about another amount');
  return { success: true, transaction, network, payer, amount };
}

function codeOf(reason: string | null | undefined, otherwise: string): string {
  return reason && CODE.test(reason) ? reason : otherwise;
}

/** The shares of the budget for facilitators. The rest lets this plugin send its own refusal before the budget ends. */
const VERIFY_PART = 1 / 6;
export const SETTLE_PART = 2 / 3;
/** Milliseconds for which a facilitator that failed is asked last. */
const AVOIDED_MS = 30_000;

/** Returns the facilitators of an auth object, in order of preference. */
export type FacilitatorsOf = (method: AuthMethod) => ReturnType<typeof facilitatorsFor>;

/** Makes the clients of the facilitators that an auth object names. @param budget the plugin's milliseconds per request. */
export function facilitatorsFor(terms: Terms, client: HttpClient, log: Log, budget: number) {
  const named = facilitatorsIn(terms);
  const part = (portion: number) => Math.max(Math.floor(budget * portion), 1);
  // All facilitators may be asked to verify, in turn, so they divide that time. Only one settles, with all of its time.
  const brief = part(VERIFY_PART / named.length);
  const timeouts = { verify: brief, supported: brief, settle: part(SETTLE_PART) };
  const all = named.map((one) => facilitatorAt(client, one, timeouts));
  return {
    inspect: (isOver: () => boolean) => inspect(all, terms, log, isOver),
    /** Has the payment verified. @returns who found it valid. @throws Refusal 402, or the last FacilitatorFailure. */
    verify: (payment: Payment) => firstOf(ordered(all), log, (by) => verify(by, payment)),
    /**
     * Has one facilitator settle, preferably the verifier. Another one is asked only if the request certainly did not reach the
     * first.
     * @param mayGoOn whether there is time to ask another one.
     * @throws FacilitatorFailure if it is unknown whether the payment was settled.
     */
    settle: (payment: Payment, verifier: Facilitator | undefined, mayGoOn: () => boolean) =>
      firstOf(
        ordered(all, verifier),
        log,
        (by) => settle(by, payment),
        ({ isUnsent }) => isUnsent && mayGoOn(),
      ),
  };
}

/** Warns of facilitators that do not support a network of the terms. One that is unreachable does not stop the start. */
async function inspect(all: readonly Facilitator[], { accepts }: Terms, log: Log, isOver: () => boolean) {
  for (const one of all) {
    try {
      const { kinds } = await ask(one, 'supported');
      const exact = kinds.filter(({ x402Version, scheme }) => x402Version === 2 && scheme === 'exact');
      const supported = new Set(exact.map(({ network }) => network));
      for (const network of new Set(accepts.map((accept) => accept.network)))
        if (!supported.has(network) && !supported.has('eip155:*'))
          log.warn(`the facilitator at ${one.origin} does not say that it settles exact payments on ${network}`);
    } catch (error) {
      if (isOver()) return;
      const detail = isRefusal(error) ? error.reason : String(error);
      log.warn(`the facilitator at ${one.origin} could not be asked what it supports`, { detail });
    }
  }
}

function ordered(all: readonly Facilitator[], preferred?: Facilitator): Facilitator[] {
  const isAvoided = ({ failedAt }: Facilitator) => performance.now() - failedAt < AVOIDED_MS;
  const rank = (one: Facilitator) => (one === preferred ? -1 : Number(isAvoided(one)));
  return [...all].sort((a, b) => rank(a) - rank(b));
}

/** Returns the first answer of several facilitators. @throws FacilitatorFailure of the last one that was asked. */
async function firstOf<T>(
  order: readonly Facilitator[],
  log: Log,
  ask: (facilitator: Facilitator) => Promise<T>,
  mayAskNext: (failure: FacilitatorFailure) => boolean = () => true,
): Promise<T> {
  for (const one of order) {
    try {
      return await ask(one);
    } catch (error) {
      if (!(error instanceof FacilitatorFailure)) throw error;
      one.failedAt = performance.now();
      if (one === order.at(-1) || !mayAskNext(error)) throw error;
      log.warn(`the facilitator at ${one.origin} failed: the next one is asked`, { detail: error.reason });
    }
  }
  throw new Error('there is a facilitator');
}
