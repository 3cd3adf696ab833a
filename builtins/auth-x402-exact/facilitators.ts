/**
 * The three questions to a facilitator, within bounds: nothing that it says is taken for granted. Of several, in order of preference,
 * the next one is asked where one is down.
 */
import type { SettleResponse } from '@x402/core/types';
import { Compile } from 'typebox/compile';
import { isBytes32, isSameHex } from '../../lib/eth/hex.ts';
import { jsonIn } from '../../lib/json/value.ts';
import { type HttpClient, type Log, RequestFailure, Type } from '../../plugins-sdk/index.ts';
import { memberAt } from '../shared/described.ts';
import { cdpHeaders, cdpKey } from './cdp.ts';
import type { Payment } from './payload.ts';
import type { FacilitatorTerms, Terms } from './terms.ts';

/** The facilitator gave no usable answer. The message is fit for the log: it shows neither the path of its URL nor a text of its. */
export class FacilitatorFailure extends Error {
  /** Whether it is certain that the facilitator has heard nothing of what it was asked. */
  readonly isUnsent: boolean;

  constructor(question: string, why: string, isUnsent = false) {
    super(`${question}: ${why}`);
    this.isUnsent = isUnsent;
  }
}

/** Milliseconds that a question may take, everything included. */
type Timeouts = Readonly<Record<'verify' | 'settle', number>>;

const MAX_ANSWER_BYTES = 256 * 1024;

/** What the protocol calls an authorisation that the chain takes no more. */
export const USED = 'invalid_exact_evm_nonce_already_used';

/** A code that may be shown to clients. */
const CODE = /^\w{1,100}$/;

/** Statuses by which a service says something of its own state or of our credentials, and nothing of the payment. */
const NOT_ABOUT_PAYMENT: ReadonlySet<number> = new Set([401, 403, 404, 408, 429]);

const maybe = Type.Optional(Type.Union([Type.String(), Type.Null()]));
const paid = { payer: maybe, transaction: maybe, network: maybe, amount: maybe };
const kind = Type.Object({ x402Version: Type.Number(), scheme: Type.String(), network: Type.String() });
const shapes = {
  verify: Compile(Type.Object({ isValid: Type.Boolean(), invalidReason: maybe, payer: maybe })),
  settle: Compile(Type.Object({ success: Type.Boolean(), errorReason: maybe, ...paid })),
  supported: Compile(Type.Object({ kinds: Type.Array(kind) })),
};
type Question = keyof typeof shapes;
type Shape<T> = { Check(value: unknown): value is T };

export class Facilitator {
  /** Of its URL. */
  readonly origin: string;
  /** When it has failed last, on the clock of the process. */
  failedAt = Number.NEGATIVE_INFINITY;
  readonly #client: HttpClient;
  readonly #terms: FacilitatorTerms;
  readonly #timeouts: Timeouts;
  /** The header with a token, where it wants one. */
  readonly #tokenFor: (method: string, url: string) => Readonly<Record<string, string>>;

  constructor(client: HttpClient, terms: FacilitatorTerms, timeouts: Timeouts) {
    this.origin = new URL(terms.url).origin;
    this.#client = client;
    this.#terms = terms;
    this.#timeouts = timeouts;
    const { auth } = terms;
    const key = auth && cdpKey(auth.keySecret);
    this.#tokenFor = (method, url) => (auth && key ? cdpHeaders(auth.keyId, key, method, url) : {});
  }

  /**
   * @returns why the payment is not valid, or nothing.
   * @throws FacilitatorFailure
   */
  async verify(payment: Payment): Promise<string | undefined> {
    const said = await this.#ask('verify', shapes.verify, payment);
    if (!said.isValid) return codeOf(said.invalidReason, 'unexpected_verify_error');
    if (said.payer && !isSameHex(said.payer, payment.authorization.from))
      throw new FacilitatorFailure('verify', 'the answer is about another payer');
    return undefined;
  }

  /**
   * @returns what became of the payment, in the words of the protocol.
   * @throws FacilitatorFailure where it is not known whether the payment was settled.
   */
  async settle(payment: Payment): Promise<SettleResponse> {
    const said = await this.#ask('settle', shapes.settle, payment);
    const payer = payment.authorization.from;
    const { network, amount } = payment.requirements;
    const transaction = isBytes32(said.transaction) ? said.transaction : '';
    const response = { success: said.success, transaction, network, payer };
    if (!said.success) {
      const errorReason = codeOf(said.errorReason, 'unexpected_settle_error');
      if (errorReason === 'settlement_pending') throw new FacilitatorFailure('settle', `pending as ${transaction}`);
      // It was free when it was verified: whoever has used it may have paid with it.
      if (errorReason === USED) throw new FacilitatorFailure('settle', 'the authorisation is used already');
      return { ...response, errorReason };
    }
    const lie = (what: string) => new FacilitatorFailure('settle', `the answer ${what}`);
    if (transaction === '') throw lie('names no transaction');
    if (said.network !== network) throw lie('is about another network');
    if (said.payer && !isSameHex(said.payer, payer)) throw lie('is about another payer');
    if (said.amount && said.amount !== amount) throw lie('is about another amount');
    return { ...response, amount };
  }

  /** Networks of which it says that it settles exact payments of version 2 there. @throws FacilitatorFailure */
  async networks(): Promise<readonly string[]> {
    const { kinds } = await this.#ask('supported', shapes.supported);
    return kinds.flatMap((one) => (one.x402Version === 2 && one.scheme === 'exact' ? one.network : []));
  }

  /** @returns an answer of the right shape; with an error status only one that says no, and is about the payment. */
  async #ask<T>(question: Question, shape: Shape<T>, payment?: Payment): Promise<T> {
    const { status, text } = await this.#send(question, payment);
    const said = jsonIn(text);
    const isAboutPayment = status >= 400 && status < 500 && !NOT_ABOUT_PAYMENT.has(status);
    const isNo = isAboutPayment && memberAt(said, question === 'verify' ? 'isValid' : 'success') === false;
    if (!isNo && (status < 200 || status >= 300)) throw new FacilitatorFailure(question, `HTTP status ${status}`);
    if (shape.Check(said)) return said;
    throw new FacilitatorFailure(question, `the answer ${said === undefined ? 'is no JSON' : 'has a wrong shape'}`);
  }

  async #send(question: Question, payment: Payment | undefined) {
    const method = payment === undefined ? 'GET' : 'POST';
    const url = `${this.#terms.url.replace(/\/+$/, '')}/${question}`;
    const timeout = Math.max(Math.floor(this.#timeouts[question === 'settle' ? 'settle' : 'verify']), 1);
    const headers = { 'Content-Type': 'application/json', ...this.#terms.headers, ...this.#tokenFor(method, url) };
    const body = payment && JSON.stringify(askedOf(payment));
    try {
      const answer = await this.#client.request({ method, url, headers, body, timeout, maxBytes: MAX_ANSWER_BYTES });
      return { status: answer.status, text: answer.body.toString() };
    } catch (error) {
      if (!(error instanceof RequestFailure)) throw error;
      const why = error.kind === 'timeout' ? `no complete answer within ${timeout} ms` : error.message;
      throw new FacilitatorFailure(question, why, error.phase !== 'answer');
    }
  }
}

/** What facilitators are sent: what was checked or offered, and nothing else that a client may have added. */
function askedOf({ requirements, signature, authorization, offer }: Payment): object {
  const { resource, extensions: { bazaar } = {} } = offer;
  const extensions = bazaar === undefined ? {} : { extensions: { bazaar } };
  const payload = { signature, authorization };
  const paymentPayload = { x402Version: 2, resource, accepted: requirements, payload, ...extensions };
  return { x402Version: 2, paymentPayload, paymentRequirements: requirements };
}

function codeOf(reason: string | null | undefined, otherwise: string): string {
  return reason && CODE.test(reason) ? reason : otherwise;
}

/** The parts of the budget for facilitators: what is left lets this plugin refuse in its own words before its budget ends. */
const VERIFY_PART = 1 / 6;
export const SETTLE_PART = 2 / 3;
/** Milliseconds for which one that failed is asked last. */
const AVOIDED_MS = 30_000;

export class Facilitators {
  readonly #all: readonly Facilitator[];
  readonly #networks: ReadonlySet<string>;
  readonly #log: Log;

  /** @param budget milliseconds per request of the plugin. */
  constructor(terms: Terms, client: HttpClient, log: Log, budget: number) {
    const named = [terms.facilitator].flat().map((one) => (typeof one === 'string' ? { url: one } : one));
    // Each may be asked whether a payment is good, one after the other; the settlement is one's alone.
    const timeouts = { verify: (budget * VERIFY_PART) / named.length, settle: budget * SETTLE_PART };
    this.#all = named.map((one) => new Facilitator(client, one, timeouts));
    this.#networks = new Set(terms.accepts.map((accept) => accept.network));
    this.#log = log;
  }

  /** @returns why the payment is not valid, if so, and who says it. @throws FacilitatorFailure of the last one, where none has a verdict. */
  verify(payment: Payment): Promise<{ readonly said: string | undefined; readonly by: Facilitator }> {
    return this.#first(async (by) => ({ said: await by.verify(payment), by }));
  }

  /**
   * Has one settle, first the one that has verified. Once it may have heard of it, nobody else is asked.
   * @param mayGoOn whether there is time to ask another one.
   * @throws FacilitatorFailure where it is not known whether the payment was settled.
   */
  settle(verifier: Facilitator, mayGoOn: () => boolean, payment: Payment) {
    const mayAskNext = ({ isUnsent }: FacilitatorFailure) => isUnsent && mayGoOn();
    return this.#first((one) => one.settle(payment), mayAskNext, verifier);
  }

  /** Tells operators of those that do not do what they count on. They may be away: that is no reason not to start. */
  async inspect(isOver: () => boolean): Promise<void> {
    for (const facilitator of this.#all) {
      const { origin } = facilitator;
      try {
        const supported = new Set(await facilitator.networks());
        for (const network of this.#networks)
          if (!supported.has(network) && !supported.has('eip155:*'))
            this.#log.warn(`the facilitator at ${origin} does not say that it settles exact payments on ${network}`);
      } catch (error) {
        if (isOver()) return;
        const detail = error instanceof Error ? error.message : String(error);
        this.#log.warn(`the facilitator at ${origin} could not be asked what it supports`, { detail });
      }
    }
  }

  async #first<T>(
    ask: (facilitator: Facilitator) => Promise<T>,
    mayAskNext: (failure: FacilitatorFailure) => boolean = () => true,
    preferred?: Facilitator,
  ): Promise<T> {
    const isAvoided = ({ failedAt }: Facilitator) => performance.now() - failedAt < AVOIDED_MS;
    const rank = (one: Facilitator) => (one === preferred ? -1 : Number(isAvoided(one)));
    const order = [...this.#all].sort((a, b) => rank(a) - rank(b));
    for (const one of order) {
      try {
        return await ask(one);
      } catch (error) {
        if (!(error instanceof FacilitatorFailure)) throw error;
        one.failedAt = performance.now();
        if (one === order.at(-1) || !mayAskNext(error)) throw error;
        this.#log.warn(`the facilitator at ${one.origin} failed: the next one is asked`, { detail: error.message });
      }
    }
    throw new Error('there is a facilitator');
  }
}
