import type { FacilitatorConfig } from '@x402/core/server';
import type { PaymentPayload, PaymentRequirements, SettleResponse } from '@x402/core/types';
import { isBytes32, isSameHex } from '../../lib/eth/hex.ts';
import { LONGEST_TIMER } from '../../lib/time/timer.ts';
import { type HttpClient, RequestFailure } from '../../plugins-sdk/index.ts';
import { cdpHeaders } from './cdp.ts';
import type { Core } from './installed.ts';
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

/** Bytes of an answer; the list of what a facilitator supports is the longest. */
const LARGEST = 256 * 1024;

/** A code that may be shown to clients. */
const CODE = /^\w{1,100}$/;

/** Statuses by which a service says something of its own state or of our credentials, and nothing of the payment. */
const NOT_ABOUT_PAYMENT: ReadonlySet<number> = new Set([401, 403, 404, 408, 429]);

/** A `fetch` with the bounds of the service's own client: limited size, no redirects, no request sent twice. */
export function boundedFetch(client: HttpClient): typeof globalThis.fetch {
  return async (url, { method = 'GET', headers, body, signal } = {}) => {
    const answer = await client.request({
      method,
      url: String(url),
      headers: Object.fromEntries(new Headers(headers)),
      body: typeof body === 'string' ? body : undefined,
      // The library's own deadline comes with the signal.
      timeout: LONGEST_TIMER,
      signal: signal ?? undefined,
      maxBytes: LARGEST,
    });
    return new Response(answer.body.length === 0 ? null : new Uint8Array(answer.body), { status: answer.status });
  };
}

/** The headers of a request, by the last segment of its path. */
type AuthHeaders = Awaited<ReturnType<NonNullable<FacilitatorConfig['createAuthHeaders']>>>;
type Client = InstanceType<Core['HTTPFacilitatorClient']>;

/** Who verifies payments and settles them on chain; nothing that it says is taken for granted. */
export class Facilitator {
  readonly #verifying: Client;
  readonly #settling: Client;
  readonly #describing: Client;
  readonly #timeouts: Timeouts;
  /** Of its URL. */
  readonly origin: string;

  constructor({ HTTPFacilitatorClient }: Core, terms: FacilitatorTerms, timeouts: Timeouts) {
    const { url, headers = {}, auth } = terms;
    // Each has a client of its own, for which alone a token is signed.
    const client = (path: 'verify' | 'settle' | 'supported', milliseconds: number) => {
      const method = path === 'supported' ? 'GET' : 'POST';
      const createAuthHeaders = async () => {
        const token = auth && (await tokenFor(auth, method, `${url.replace(/\/+$/, '')}/${path}`));
        return { [path]: { ...headers, ...token } } as AuthHeaders;
      };
      return new HTTPFacilitatorClient({ url, timeoutMs: Math.max(Math.floor(milliseconds), 1), createAuthHeaders });
    };
    this.#verifying = client('verify', timeouts.verify);
    this.#settling = client('settle', timeouts.settle);
    this.#describing = client('supported', timeouts.verify);
    this.#timeouts = timeouts;
    this.origin = new URL(url).origin;
  }

  /**
   * @returns why the payment is not valid, or nothing.
   * @throws FacilitatorFailure
   */
  async verify(payload: PaymentPayload, requirements: PaymentRequirements, payer: string): Promise<string | undefined> {
    const unexpected = 'unexpected_verify_error';
    try {
      const verified = await this.#verifying.verify(payload, requirements);
      if (!verified.isValid) return codeOf(verified.invalidReason, unexpected);
      if (verified.payer !== undefined && !isSameHex(verified.payer, payer))
        throw new FacilitatorFailure('verify: the answer is about another payer');
      return undefined;
    } catch (error) {
      if (isAbout(error, 'VerifyError')) return codeOf(error.invalidReason, unexpected);
      throw failureOf('verify', error, this.#timeouts.verify);
    }
  }

  /** @throws FacilitatorFailure where it is not known whether the payment was settled. */
  async settle(payload: PaymentPayload, requirements: PaymentRequirements, payer: string): Promise<Settlement> {
    let response: SettleResponse;
    try {
      response = await this.#settling.settle(payload, requirements);
    } catch (error) {
      if (!isAbout(error, 'SettleError')) throw failureOf('settle', error, this.#timeouts.settle);
      const { errorReason, transaction } = error;
      response = { success: false, network: requirements.network, payer, transaction: stringOrEmpty(transaction) };
      if (typeof errorReason === 'string') response.errorReason = errorReason;
    }
    return settlementOf(response, requirements, payer);
  }

  /** Networks of which it says that it settles exact payments of version 2 there. @throws FacilitatorFailure */
  async networks(): Promise<readonly string[]> {
    try {
      const { kinds } = await this.#describing.getSupported();
      return kinds
        .filter(({ x402Version, scheme }) => x402Version === 2 && scheme === 'exact')
        .map(({ network }) => network);
    } catch (error) {
      throw failureOf('supported', error, this.#timeouts.verify);
    }
  }
}

function settlementOf(
  { success, transaction, errorReason, ...said }: SettleResponse,
  { network, amount }: PaymentRequirements,
  payer: string,
): Settlement {
  const isHash = isBytes32(transaction);
  // Only what was checked is passed on.
  const response = { success, transaction: isHash ? transaction : '', network, payer };
  if (!success) {
    const reason = codeOf(errorReason, 'unexpected_settle_error');
    if (reason === 'settlement_pending') throw new FacilitatorFailure(`settle: pending as ${response.transaction}`);
    return { kind: 'failed', reason, response: { ...response, errorReason: reason } };
  }
  const lie = (what: string) => new FacilitatorFailure(`settle: the answer ${what}`);
  if (!isHash) throw lie('names no transaction');
  if (said.network !== network) throw lie('is about another network');
  if (said.payer !== undefined && !isSameHex(said.payer, payer)) throw lie('is about another payer');
  if (said.amount !== undefined && said.amount !== amount) throw lie('is about another amount');
  return { kind: 'settled', response: { ...response, amount } };
}

/** Errors of the library carry what the facilitator said, of any type. */
interface Said {
  readonly statusCode: number;
  readonly invalidReason?: unknown;
  readonly errorReason?: unknown;
  readonly transaction?: unknown;
}

/** Whether an answer with an error status says something of the payment. */
function isAbout(error: unknown, name: 'VerifyError' | 'SettleError'): error is Error & Said {
  if (!(error instanceof Error) || error.name !== name || !('statusCode' in error)) return false;
  const { statusCode: status } = error;
  return typeof status === 'number' && status >= 400 && status < 500 && !NOT_ABOUT_PAYMENT.has(status);
}

function stringOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function codeOf(reason: unknown, otherwise: string): string {
  return typeof reason === 'string' && CODE.test(reason) ? reason : otherwise;
}

/** @throws FacilitatorFailure: the facilitator has heard nothing. */
async function tokenFor(...asked: Parameters<typeof cdpHeaders>) {
  try {
    return await cdpHeaders(...asked);
  } catch {
    // What the library says of a key may quote it.
    throw new FacilitatorFailure('no token could be signed with auth.keySecret', true);
  }
}

function failureOf(what: string, error: unknown, timeout: number): FacilitatorFailure {
  if (error instanceof FacilitatorFailure) return error;
  const isUnsent = error instanceof RequestFailure && error.phase !== 'answer';
  return new FacilitatorFailure(`${what}: ${reasonOf(error, timeout)}`, isUnsent);
}

/** The library's messages quote answers, which may quote what they were asked with. */
function reasonOf(error: unknown, timeout: number): string {
  if (error instanceof RequestFailure)
    return error.kind === 'aborted' ? `no complete answer within ${Math.floor(timeout)} ms` : error.message;
  if (!(error instanceof Error)) return 'failed';
  if ('statusCode' in error) return `HTTP status ${error.statusCode}`;
  if (error.name === 'FacilitatorTimeoutError') return `no complete answer within ${Math.floor(timeout)} ms`;
  if (error.name === 'FacilitatorResponseError') {
    return error.message.includes('invalid JSON') ? 'the answer is no JSON' : 'the answer has a wrong shape';
  }
  const [, status] = /failed \((\d{3})\)/.exec(error.message) ?? [];
  return status === undefined ? 'failed' : `HTTP status ${status}`;
}
