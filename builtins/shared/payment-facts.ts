/** By what a payment is told from others in records of requests. */
import { ContextKey } from '../../plugins-sdk/index.ts';

/** What identifies a payment. */
export interface PaymentFacts {
  /** CAIP-2, such as `eip155:8453`. */
  readonly network: string;
  readonly payer: string;
  /** Hash of the transaction that pays, once it is known. */
  readonly transaction?: string;
  /** Of an authorisation to take the payment. */
  readonly nonce?: string;
}

/** What pays for a request, for records of it; left by whoever takes the payment, and again when more of it is known. */
export const payment = new ContextKey<PaymentFacts>('payment', { logged: true });
