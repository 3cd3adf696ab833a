/** The mark of a payment: what stands under its name, and what turns into what. */
import { isRecord, jsonIn } from '../../lib/json/value.ts';
import { StateUnreadable } from '../../plugins-sdk/state.ts';

/** What became of a payment, as far as this service knows. */
export type PaymentState =
  /** A request has it, and nothing was done with it yet. */
  | 'held'
  /** On chain: it buys a request, of which no end is known. */
  | 'redeemed'
  | 'answered'
  | 'given back'
  | 'released'
  /** Given back as often as it may be; its last request failed. */
  | 'used up'
  /** Standard payments: the facilitator is asked, and has not answered. */
  | 'settling'
  | 'settled'
  | 'not settled'
  /** Nobody could tell whether it was taken. */
  | 'unknown';

/** A payment and its last request, by which operators find both. */
export interface About {
  /** Epoch milliseconds at which that request began to use it. */
  readonly since: number;
  readonly requestId: string;
  /** `<api>/<endpoint>` */
  readonly endpoint: string;
  readonly network: string;
  readonly asset: string;
  readonly amount: string;
  readonly payer: string;
  readonly nonce?: string;
  readonly transaction?: string;
  readonly recipient?: string;
  /** Unix seconds. */
  readonly validBefore?: string;
}

/** What stands under the name of a payment. */
export interface Mark extends About {
  readonly state: PaymentState;
  /** Token of the request that has the payment, or has used it; without one the payment is free. */
  readonly by?: string;
  /** Token of the request by which it is listed while no end of it is known: one in doubt is listed once, however often it is sent. */
  readonly listed?: string;
  /** How often it was given back. */
  readonly refunds: number;
  /** What stood there before this request, and stands there again where the request comes to nothing. */
  readonly before?: Mark;
}

/** A mark with the name that it stands under. */
export interface Payment extends Mark {
  readonly payment: string;
}

/** One request's hold on a payment. Another request's on the same payment has another token. */
export interface Ticket {
  readonly payment: string;
  readonly token: string;
  readonly about: About;
}

export const MOST_REFUNDS = 3;
/** Milliseconds that clocks of replicas, engines and chains may differ, with some more. */
export const CLOCK_MARGIN_MS = 900_000;

/** Milliseconds for which a payment is remembered that can be used until then. */
export function lifeUntil(end: number, now: number): number {
  return Math.max(end - now, 0) + CLOCK_MARGIN_MS;
}

const OPEN: ReadonlySet<PaymentState> = new Set(['held', 'redeemed', 'settling', 'unknown']);
const HELD: ReadonlySet<PaymentState> = new Set(['held', 'settling', 'unknown']);

/** Whether no end of it is known. */
export function isOpen({ state }: Mark): boolean {
  return OPEN.has(state);
}

/** Whether a request has it that may come to nothing yet. */
export function isHeld({ by, state }: Mark): boolean {
  return by !== undefined && HELD.has(state);
}

/** @returns nothing for what is no mark. */
export function markIn(text: string | undefined): Mark | undefined {
  const mark = text === undefined ? undefined : jsonIn(text);
  const isMark = isRecord(mark) && typeof mark.state === 'string' && Number.isSafeInteger(mark.refunds);
  return isMark ? (mark as unknown as Mark) : undefined;
}

/** What stands there once the request holds the payment; the same where it cannot. @throws StateUnreadable */
export function heldIn(text: string | undefined, { payment, token, about }: Ticket): string {
  const before = markIn(text);
  if (text !== undefined && before === undefined) throw new StateUnreadable(`payment ${payment}`);
  if (text !== undefined && before?.by !== undefined) return text;
  // One that may have been taken stays listed as such, and since when: from then on the chain is searched.
  const { since, listed = token } = before ?? {};
  const doubt = before?.state === 'unknown' && { state: before.state, since, listed };
  const held = { ...about, state: 'held', listed: token, ...doubt, by: token, refunds: before?.refunds ?? 0 };
  return JSON.stringify({ ...held, ...(before && { before }) });
}
