/** The three questions to one facilitator, within bounds. Nothing that it says is taken for granted. */
import type { PaymentPayload, PaymentRequirements, SettleResponse } from '@x402/core/types';
import { Compile } from 'typebox/compile';
import { isBytes32, isSameHex } from '../../lib/eth/hex.ts';
import { jsonIn } from '../../lib/json/value.ts';
import { type HttpClient, RequestFailure, Type } from '../../plugins-sdk/index.ts';
import { memberAt } from '../shared/described.ts';
import { cdpHeaders, cdpKey } from './cdp.ts';
import type { FacilitatorTerms } from './terms.ts';

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

/** A payment as a facilitator is asked about it. */
export interface Asked {
  readonly paymentPayload: PaymentPayload;
  readonly paymentRequirements: PaymentRequirements;
  readonly payer: string;
}

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
  async verify(asked: Asked): Promise<string | undefined> {
    const said = await this.#ask('verify', shapes.verify, asked);
    if (!said.isValid) return codeOf(said.invalidReason, 'unexpected_verify_error');
    if (said.payer && !isSameHex(said.payer, asked.payer))
      throw new FacilitatorFailure('verify', 'the answer is about another payer');
    return undefined;
  }

  /**
   * @returns what became of the payment, in the words of the protocol.
   * @throws FacilitatorFailure where it is not known whether the payment was settled.
   */
  async settle(asked: Asked): Promise<SettleResponse> {
    const said = await this.#ask('settle', shapes.settle, asked);
    const { payer } = asked;
    const { network, amount } = asked.paymentRequirements;
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
  async #ask<T>(question: Question, shape: Shape<T>, asked?: Asked): Promise<T> {
    const { status, text } = await this.#send(question, asked);
    const said = jsonIn(text);
    const isAboutPayment = status >= 400 && status < 500 && !NOT_ABOUT_PAYMENT.has(status);
    const isNo = isAboutPayment && memberAt(said, question === 'verify' ? 'isValid' : 'success') === false;
    if (!isNo && (status < 200 || status >= 300)) throw new FacilitatorFailure(question, `HTTP status ${status}`);
    if (shape.Check(said)) return said;
    throw new FacilitatorFailure(question, `the answer ${said === undefined ? 'is no JSON' : 'has a wrong shape'}`);
  }

  async #send(question: Question, asked: Asked | undefined) {
    const method = asked === undefined ? 'GET' : 'POST';
    const url = `${this.#terms.url.replace(/\/+$/, '')}/${question}`;
    const timeout = Math.max(Math.floor(this.#timeouts[question === 'settle' ? 'settle' : 'verify']), 1);
    const headers = { 'Content-Type': 'application/json', ...this.#terms.headers, ...this.#tokenFor(method, url) };
    const { paymentPayload, paymentRequirements } = asked ?? {};
    const body = asked && JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements });
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

function codeOf(reason: string | null | undefined, otherwise: string): string {
  return reason && CODE.test(reason) ? reason : otherwise;
}
