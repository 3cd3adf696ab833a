/** The mark of a payment: its record in the state, and the changes between its states. */
import { randomId } from '../../lib/eth/hex.ts';
import { isRecord, jsonIn } from '../../lib/json/value.ts';
import { ContextKey, type Exchange } from '../../plugins-sdk/index.ts';
import { StateUnreadable } from '../../plugins-sdk/state.ts';

/** The state of a payment, as far as this service knows. */
export type PaymentState =
  /** A request holds it, and has not used it yet. */
  | 'held'
  /** On-chain payments: a request has used it, and its end is not known. */
  | 'redeemed'
  | 'answered'
  /** On-chain payments: the client left before an answer could be sent, and got nothing back. */
  | 'left'
  | 'given back'
  | 'released'
  /** Given back as often as allowed, and its last request failed. */
  | 'used up'
  /** Standard payments: the facilitator was asked and has not answered. */
  | 'settling'
  | 'settled'
  | 'not settled'
  /** It is not known whether the payment was taken. */
  | 'unknown';

/** The facts of a payment and its last request, for operators to find both. */
export interface About {
  /** Epoch milliseconds at which that request began to use it. */
  readonly since: number;
  readonly requestId: string;
  /** `<api>/<endpoint>` */
  readonly endpoint: string;
  /** CAIP-2, such as `eip155:8453`. */
  readonly network: string;
  readonly asset: string;
  readonly amount: string;
  readonly payer: string;
  /** The nonce of the payer's authorisation. */
  readonly nonce?: string;
  /** The hash of the paying transaction, once it is known. */
  readonly transaction?: string;
  readonly recipient?: string;
  /** Unix seconds. */
  readonly validBefore?: string;
}

/** The record that is stored under a payment's name. */
export interface Mark extends About {
  readonly state: PaymentState;
  /** Token of the request that holds the payment, or has used it; without one the payment is free. */
  readonly by?: string;
  /** Token of the request under which the open payment is listed. A payment in doubt is listed once, however often it is sent. */
  readonly listed?: string;
  /** How often the payment was given back. */
  readonly refunds: number;
  /** The mark before this request; it is restored if the request fails. */
  readonly before?: Mark;
}

/** A mark with its payment's name. */
export interface Payment extends Mark {
  readonly payment: string;
}

/** What becomes of a payment at the end of its use. */
export interface Outcome extends Pick<Mark, 'state' | 'transaction'> {
  /** `undefined` frees the payment; without it, the payment stays with the request that has used it. */
  readonly by?: string | undefined;
  readonly refunds?: number;
}

/** Returns the mark after the end of a use, to be stored. */
export const endedAs = (mark: Mark, outcome: Outcome) => ({ ...mark, before: undefined, ...outcome });

/** One request's hold on a payment. Another request's on the same payment has another token. */
export interface Ticket {
  readonly payment: string;
  readonly token: string;
  readonly about: About;
}

/** Returns what operators are told of a payment. */
export function factsOf(mark: About & Partial<Payment>) {
  const { payment, state, by, listed, refunds, before, since, recipient, validBefore, ...facts } = mark;
  return facts;
}

/** The request that asks for a payment to be held, and what it says of the payment. */
type Asking = Pick<Exchange, 'requestId' | 'endpoint'>;
type Facts = Omit<About, 'requestId' | 'endpoint'>;

/** Makes a ticket for a hold that is still to be taken. @param payment its name, in hex of either case. */
export function ticketFor(payment: string, { requestId, endpoint }: Asking, facts: Facts): Ticket {
  const about = { requestId, endpoint: `${endpoint.api}/${endpoint.name}`, ...facts };
  return { payment: payment.toLowerCase(), token: randomId(), about };
}

/** How often one payment may be given back. */
export const MOST_REFUNDS = 3;
/** Milliseconds by which the clocks of replicas, engines and chains may differ, with a margin. */
export const CLOCK_MARGIN_MS = 900_000;

/** Returns the milliseconds for which to remember a payment that is usable until `end`. */
export const lifeUntil = (end: number, now: number): number => Math.max(end - now, 0) + CLOCK_MARGIN_MS;

const OPEN: ReadonlySet<PaymentState> = new Set(['held', 'redeemed', 'settling', 'unknown']);
const HELD: ReadonlySet<PaymentState> = new Set(['held', 'settling', 'unknown']);

/** Returns whether the payment has no known end. */
export const isOpen = ({ state }: Mark): boolean => OPEN.has(state);

/** Returns whether a request holds the payment and may still give it up. */
export const isHeld = ({ by, state }: Mark): boolean => by !== undefined && HELD.has(state);

/** Parses a mark; returns undefined for any other text. */
export function markIn(text: string | undefined): Mark | undefined {
  const mark = text === undefined ? undefined : jsonIn(text);
  const isMark = isRecord(mark) && typeof mark.state === 'string' && Number.isSafeInteger(mark.refunds);
  return isMark ? (mark as unknown as Mark) : undefined;
}

/** Returns the record after a request has tried to hold the payment: unchanged if it cannot. @throws StateUnreadable */
export function heldIn(text: string | undefined, { payment, token, about }: Ticket): string {
  const before = markIn(text);
  if (text !== undefined && before === undefined) throw new StateUnreadable(`payment ${payment}`);
  if (text !== undefined && before?.by !== undefined) return text;
  // A payment that may have been taken keeps its state and `since`: the chain is searched from that time on.
  const { since, listed = token } = before ?? {};
  const doubt = before?.state === 'unknown' && { state: before.state, since, listed };
  const held = { ...about, state: 'held', listed: token, ...doubt, by: token, refunds: before?.refunds ?? 0 };
  return JSON.stringify({ ...held, ...(before && { before }) });
}

/** The payment of a request, for its records. The plugin that takes it sets this, and again when more is known. */
export const payment = new ContextKey<Pick<About, 'network' | 'payer' | 'transaction' | 'nonce'>>('payment', {
  logged: true,
});
