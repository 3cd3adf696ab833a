import type { PaymentPayload, PaymentRequirements, SettleResponse } from '@x402/core/types';
import { Compile } from 'typebox/compile';
import { isBytes32, isSameHex } from '../../lib/eth/hex.ts';
import { jsonIn } from '../../lib/json/value.ts';
import { type HttpClient, RequestFailure, type Static, Type } from '../../plugins-sdk/index.ts';
import { memberAt } from '../shared/described.ts';
import { cdpHeaders } from './cdp.ts';
import type { FacilitatorTerms } from './terms.ts';

/** The facilitator gave no usable answer. The message is fit for the log: it shows neither the path of its URL nor a text of its. */
export class FacilitatorFailure extends Error {
  /** Whether it is certain that the facilitator has heard nothing of what it was asked. */
  readonly isUnsent: boolean;

  constructor(message: string, isUnsent = false) {
    super(message);
    this.isUnsent = isUnsent;
  }
}

/** Milliseconds that a question may take, everything included. */
export interface Timeouts {
  readonly verify: number;
  readonly settle: number;
}

/** What became of a payment, in the words of the protocol. */
export type Settlement =
  | { readonly kind: 'settled'; readonly response: SettleResponse }
  | { readonly kind: 'failed'; readonly reason: string; readonly response: SettleResponse };

const MAX_ANSWER_BYTES = 256 * 1024;

/** A code that may be shown to clients. */
const CODE = /^\w{1,100}$/;

/** Statuses by which a service says something of its own state or of our credentials, and nothing of the payment. */
const NOT_ABOUT_PAYMENT: ReadonlySet<number> = new Set([401, 403, 404, 408, 429]);

const maybe = Type.Optional(Type.Union([Type.String(), Type.Null()]));
const kind = Type.Object({ x402Version: Type.Number(), scheme: Type.String(), network: Type.String() });
const shapes = {
  verify: Type.Object({ isValid: Type.Boolean(), invalidReason: maybe, payer: maybe }),
  settle: Type.Object({
    ...{ success: Type.Boolean(), errorReason: maybe, payer: maybe },
    ...{ transaction: maybe, network: maybe, amount: maybe },
  }),
  supported: Type.Object({ kinds: Type.Array(kind) }),
};
const checks = {
  verify: Compile(shapes.verify),
  settle: Compile(shapes.settle),
  supported: Compile(shapes.supported),
};
type Question = keyof typeof shapes;

/** Verifies payments and settles them on chain. Nothing that it says is taken for granted. */
export class Facilitator {
  /** Of its URL. */
  readonly origin: string;
  readonly #client: HttpClient;
  readonly #terms: FacilitatorTerms;
  readonly #timeouts: Timeouts;

  constructor(client: HttpClient, terms: FacilitatorTerms, timeouts: Timeouts) {
    this.origin = new URL(terms.url).origin;
    this.#client = client;
    this.#terms = terms;
    this.#timeouts = timeouts;
  }

  /**
   * @returns why the payment is not valid, or nothing.
   * @throws FacilitatorFailure
   */
  async verify(payload: PaymentPayload, requirements: PaymentRequirements, payer: string): Promise<string | undefined> {
    const said = await this.#ask('verify', bodyOf(payload, requirements));
    if (!said.isValid) return codeOf(said.invalidReason, 'unexpected_verify_error');
    if (said.payer && !isSameHex(said.payer, payer)) throw failure('verify', 'the answer is about another payer');
    return undefined;
  }

  /** @throws FacilitatorFailure where it is not known whether the payment was settled. */
  async settle(payload: PaymentPayload, requirements: PaymentRequirements, payer: string): Promise<Settlement> {
    const said = await this.#ask('settle', bodyOf(payload, requirements));
    const { network, amount } = requirements;
    const transaction = isBytes32(said.transaction) ? said.transaction : '';
    const response = { success: said.success, transaction, network, payer };
    if (!said.success) {
      const reason = codeOf(said.errorReason, 'unexpected_settle_error');
      if (reason === 'settlement_pending') throw failure('settle', `pending as ${transaction}`);
      return { kind: 'failed', reason, response: { ...response, errorReason: reason } };
    }
    const lie = (what: string) => failure('settle', `the answer ${what}`);
    if (transaction === '') throw lie('names no transaction');
    if (said.network !== network) throw lie('is about another network');
    if (said.payer && !isSameHex(said.payer, payer)) throw lie('is about another payer');
    if (said.amount && said.amount !== amount) throw lie('is about another amount');
    return { kind: 'settled', response: { ...response, amount } };
  }

  /** Networks of which it says that it settles exact payments of version 2 there. @throws FacilitatorFailure */
  async networks(): Promise<readonly string[]> {
    const { kinds } = await this.#ask('supported');
    return kinds.flatMap((one) => (one.x402Version === 2 && one.scheme === 'exact' ? one.network : []));
  }

  /** @returns an answer of the right shape; with an error status only one that says no, and is about the payment. */
  async #ask<Q extends Question>(question: Q, body?: string) {
    const { status, text } = await this.#send(question, body);
    const isFine = status >= 200 && status < 300;
    if (!isFine && (status < 400 || status >= 500 || NOT_ABOUT_PAYMENT.has(status)))
      throw failure(question, `HTTP status ${status}`);
    const said = jsonIn(text);
    if (isShape(question, said) && (isFine || isNo(said))) return said;
    if (!isFine) throw failure(question, `HTTP status ${status}`);
    throw failure(question, said === undefined ? 'the answer is no JSON' : 'the answer has a wrong shape');
  }

  async #send(
    question: Question,
    body: string | undefined,
  ): Promise<{ readonly status: number; readonly text: string }> {
    const method = body === undefined ? 'GET' : 'POST';
    const url = `${this.#terms.url.replace(/\/+$/, '')}/${question}`;
    const timeout = Math.max(Math.floor(this.#timeouts[question === 'settle' ? 'settle' : 'verify']), 1);
    const headers = { 'Content-Type': 'application/json', ...this.#terms.headers, ...this.#token(method, url) };
    try {
      const answer = await this.#client.request({ method, url, headers, body, timeout, maxBytes: MAX_ANSWER_BYTES });
      return { status: answer.status, text: answer.body.toString() };
    } catch (error) {
      if (!(error instanceof RequestFailure)) throw error;
      const why = error.kind === 'timeout' ? `no complete answer within ${timeout} ms` : error.message;
      throw failure(question, why, error.phase !== 'answer');
    }
  }

  #token(method: string, url: string): Readonly<Record<string, string>> | undefined {
    const { auth } = this.#terms;
    try {
      return auth && cdpHeaders(auth, method, url);
    } catch {
      // What the platform says of a key may quote it; the facilitator has heard nothing.
      throw new FacilitatorFailure('no token could be signed with auth.keySecret', true);
    }
  }
}

function failure(question: Question, why: string, isUnsent = false): FacilitatorFailure {
  return new FacilitatorFailure(`${question}: ${why}`, isUnsent);
}

function isShape<Q extends Question>(question: Q, said: unknown): said is Static<(typeof shapes)[Q]> {
  return checks[question].Check(said);
}

function isNo(said: object): boolean {
  return memberAt(said, 'isValid') === false || memberAt(said, 'success') === false;
}

function bodyOf(paymentPayload: PaymentPayload, paymentRequirements: PaymentRequirements): string {
  return JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements });
}

function codeOf(reason: string | null | undefined, otherwise: string): string {
  return reason && CODE.test(reason) ? reason : otherwise;
}
